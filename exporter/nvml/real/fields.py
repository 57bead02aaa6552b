"""Field values: many reads in one call, each with a type and a return code of its own.

A question is built once and asked again and again; only numbers leave this module.
"""

import ctypes
import struct
from collections.abc import Sequence
from typing import Final

import pynvml
from pynvml import NVMLError

from exporter.nvml.real.returns import GONE, Return, gravest

# NVML_FI_*, and what it is of: a link, a scope of power; 0 for the GPU.
Field = tuple[int, int]
Numbers = tuple[int | None, ...]

# Question, two times, type, return code, union.
_ROW: Final = struct.Struct("@2I2q2I8s")
# By nvmlValueType_t, without doubles: there is no field of that type that we read.
_NUMBERS: Final = {
    kind: struct.Struct(layout)
    for kind, layout in enumerate(("@I", "@L", "@Q", "@q", "@i", "@H"), start=1)
}


class FieldQuestion:
    """The buffer in which a driver answers for some fields.

    Attributes:
        count: of the fields.
        at: where the driver finds them.
    """

    def __init__(self, fields: Sequence[Field]) -> None:
        self._rows = (pynvml.c_nvmlFieldValue_t * len(fields))()
        for row, (number, scope) in zip(self._rows, fields, strict=True):
            row.fieldId, row.scopeId = number, scope
        self.count = len(fields)
        self.at = ctypes.byref(self._rows)

    def numbers(self) -> Numbers:
        """Return what was answered, in the order of the fields; None for what was not.

        Raises:
            NVMLError: nothing was answered, or the GPU is gone.
        """
        rows = [
            (_code(kind, code), kind, union)
            for *_, kind, code, union in _ROW.iter_unpack(self._rows)
        ]
        codes = [code for code, _, _ in rows if code]
        if len(codes) == self.count or not GONE.isdisjoint(codes):
            raise NVMLError(gravest(codes))
        return tuple(
            None if code else _NUMBERS[kind].unpack_from(union)[0] for code, kind, union in rows
        )


def _code(kind: int, code: int) -> int:
    # A driver that is older than the field, or of a type that was added since.
    unknown = code == Return.INVALID_ARGUMENT or (not code and kind not in _NUMBERS)
    return Return.FUNCTION_NOT_FOUND if unknown else code
