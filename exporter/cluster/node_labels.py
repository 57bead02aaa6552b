"""The label by which NVIDIA's MIG manager says what it is doing to the GPUs of this node."""

from collections.abc import Callable
from typing import Final

from slicewatch.kube.objects import Object

MIG_STATE: Final = "nvidia.com/mig.config.state"


class MigStateFeed:
    """Passes on the label's value when it changes; ``changed`` is the listener of a node's cache.

    The value is ``pending`` while GPUs are repartitioned, which they can only be while nobody
    holds them, then ``success`` or ``failed``; empty without the label. It starts out as empty.
    While the API server is away no change arrives: whoever gives up the GPUs on ``pending`` has
    to limit for how long.
    """

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._value = ""

    def changed(self, _old: Object | None, new: Object | None) -> None:
        """Apply one change; None is absence."""
        value = new.metadata.labels.get(MIG_STATE, "") if new is not None else ""
        if value != self._value:
            self._value = value
            self._tell(value)
