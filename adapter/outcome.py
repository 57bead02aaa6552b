"""What comes of asking for a metric of an object: a value with its inputs, or why there is none."""

from dataclasses import dataclass
from enum import StrEnum

from slicewatch.wire.layout import Device


class Rule(StrEnum):
    """How the value of a device became the value of an object; the text is for people."""

    DEVICE = "the device's value"
    ALONE = "the device's value, since the pod holds it alone"
    WORKLOAD_ALONE = "the device's value, since pods of one workload hold it"
    WORKLOAD_SHARE = "100 * W / max(m / n, 1 - (B - W))"
    SHARES_UNKNOWN = "the device's value, since what each of its tenants uses is not known"
    TENANT = "what the object's own containers use of the device"


class Absence(StrEnum):
    """Why there is no value. The text completes 'no value, since …'."""

    NOT_SELECTED = "the metric selector leaves out its devices"
    FINISHED = "it has finished"
    UNSCHEDULED = "it is not scheduled to a node yet"
    NO_EXPORTER = "no exporter tells about its node"
    TENANTS_UNKNOWN = "the exporter does not know which pods hold the node's devices"
    NO_DEVICE = "it holds no GPU"
    NOT_ASSIGNED = "it asks for a GPU, but the exporter of its node names it as holder of none"
    NOT_ATTRIBUTABLE = "others hold the device too, and its own part is not known"
    UNSUPPORTED = "the device cannot report it"
    DOWN = "the device does not answer"
    NO_VALUE = "the device has no value yet"
    STALE = "the last value is too old"

    @property
    def passing(self) -> bool:
        """Tell a state that may end by itself from one that lasts."""
        return self in {Absence.NO_EXPORTER, Absence.DOWN, Absence.NO_VALUE, Absence.STALE}


@dataclass(frozen=True, slots=True, kw_only=True)
class Shares:
    """Inputs of the workload's share on one device.

    Attributes:
        own: W, busy share of the workload's containers, 0-1.
        total: B, of all that run there, processes of the host included, 0-1.
        holders: m, containers of the workload that hold the device.
        tenants: n, containers of anyone that hold it.
    """

    own: float
    total: float
    holders: int
    tenants: int

    def percent(self) -> float:
        """Return how much of the time that the workload could have had it used, 0-100."""
        free_of_others = 1.0 - min(1.0, max(0.0, self.total - self.own))
        available = max(self.holders / self.tenants, free_of_others)
        return min(100.0, 100.0 * self.own / available)


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One device's contribution to an object's value: ``value``, or else ``absence``.

    Attributes:
        age_seconds: of the reading when it was sent; None before the first.
        device_value: what the device as a whole reads.
        detail: what ``absence`` alone does not say.
    """

    device: Device
    age_seconds: float | None = None
    device_value: float | None = None
    value: float | None = None
    rule: Rule | None = None
    shares: Shares | None = None
    absence: Absence | None = None
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Value of an object over its devices: ``value`` and ``age_seconds``, or else ``absence``.

    Attributes:
        age_seconds: of the oldest contributing reading when it was sent.
    """

    parts: tuple[Part, ...] = ()
    value: float | None = None
    age_seconds: float = 0.0
    absence: Absence | None = None
    detail: str = ""

    @property
    def why(self) -> str:
        """Return why there is no value, as the end of a sentence; empty if there is one."""
        if self.absence is None:
            return ""
        return f"{self.absence} ({self.detail})" if self.detail else str(self.absence)
