"""What a check is given: the latest polls of one GPU, or of the node, and what is remembered.

Pure data. Times are seconds of this process's monotonic clock, those of a poll the moment when its
answer arrived.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from slicewatch.wire.evidence import Event, Evidence, Gpu

# A check looks back over as many polls as this, the newest included.
POLLS_KEPT: Final = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """What the operator chose; see ``health.settings``.

    Attributes:
        memory_errors: uncorrected errors since the baseline of this boot from which a GPU fails.
        temperature_celsius: above it a GPU is too hot.
        hot_cordons: heat alone is enough to cordon; else the board itself has to slow down too.
        expected_gpus: how many the node should have; None where nobody says.
        hang_seconds: a read that takes longer has hung for good.
    """

    memory_errors: int = 10
    temperature_celsius: float = 90
    hot_cordons: bool = False
    expected_gpus: int | None = None
    hang_seconds: float = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Since:
    """When and under what a fault was raised.

    Attributes:
        boot_id, driver_run: which life of the kernel, and which start of the driver; a change of
            either is the only sign of a reset that older drivers give.
        at_seconds: since 1970; for people, and for limits of a day.
    """

    boot_id: str
    driver_run: str
    at_seconds: float


def driver_run(evidence: Evidence) -> str:
    """Return which start of the driver it is of; two lives of the exporter count for two."""
    return f"{evidence.run}/{evidence.driver.starts}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Poll:
    """One answer of the exporter, as it concerns one GPU or the node.

    Attributes:
        gpu: None in a case of the node.
        events: those of the GPU that came with this poll; of the node, those of no known GPU.
    """

    at: float
    evidence: Evidence
    gpu: Gpu | None = None
    events: tuple[Event, ...] = ()

    @property
    def boot_id(self) -> str:
        """Return which life of the kernel it is of."""
        return self.evidence.boot_id

    @property
    def driver_run(self) -> str:
        """Return which start of the driver it is of; see ``driver_run``."""
        return driver_run(self.evidence)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """All that a check may know.

    Attributes:
        polls: at least one, the newest last, those of one boot.
        thresholds: the operator's.
        baseline: what the check remembered of this GPU in this boot, by names of its own.
        raised: when the fault of this check was raised; None while there is none.
    """

    polls: Sequence[Poll]
    thresholds: Thresholds
    baseline: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    raised: Since | None = None

    @property
    def newest(self) -> Poll:
        """Return the poll that is judged."""
        return self.polls[-1]

    @property
    def gpu(self) -> Gpu:
        """Return the GPU as the newest poll has it.

        Raises:
            LookupError: it is a case of the node.
        """
        if self.newest.gpu is None:
            raise LookupError("a case of the node has no GPU")
        return self.newest.gpu
