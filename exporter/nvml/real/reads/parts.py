"""A reading that takes several calls, of which a board may lack some."""

from collections.abc import Callable
from typing import Any

from pynvml import NVMLError

from exporter.nvml.real.returns import GONE, gravest


def parts(*calls: Callable[[], Any]) -> list[Any]:
    """Return what each call returns, None for one that fails.

    Raises:
        NVMLError: all of them failed, or the GPU is gone.
    """
    found, codes = [], []
    for call in calls:
        try:
            found.append(call())
        except NVMLError as error:
            if error.value in GONE:
                raise
            found.append(None)
            codes.append(error.value)
    if len(codes) == len(calls):
        raise NVMLError(gravest(codes))
    return found
