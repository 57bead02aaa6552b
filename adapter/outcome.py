"""The outcome of asking for an object's metric: a value with its inputs, or why there is none."""

from collections.abc import Sequence
from enum import StrEnum

import msgspec

from slicewatch.catalog.model import Combine
from slicewatch.wire.layout import Device


class Rule(StrEnum):
    """How a device's value became an object's value; the text is for people."""

    DEVICE = "the device's value"
    ALONE = "the device's value, since only this pod holds it"
    WORKLOAD_ALONE = "the device's value, since only pods of this workload hold it"
    WORKLOAD_SHARE = "100 * W / max(m / n, 1 - (B - W))"
    SHARES_UNKNOWN = "the device's value, since what each of its tenants uses is unknown"
    TENANT = "the part of the device that the object's own containers use"


class Absence(StrEnum):
    """Why there is no value. The text completes 'no value, since …'."""

    NOT_SELECTED = "the metric selector excludes its devices"
    FINISHED = "it has finished"
    UNSCHEDULED = "it has not been scheduled to a node yet"
    NO_EXPORTER = "no exporter reports for its node"
    TENANTS_UNKNOWN = "the exporter does not know which pods hold the node's devices"
    NO_DEVICE = "it holds no GPU"
    NOT_ASSIGNED = "it requests a GPU, but its node's exporter does not list it as holding one"
    NOT_ATTRIBUTABLE = "others hold the device too, and its own part is unknown"
    NO_SHARES = "what its containers do on the device is not known"
    UNSUPPORTED = "the device cannot report it"
    NOT_READ = "its node's exporter does not read it"
    DOWN = "the device does not respond"
    NO_VALUE = "the device has no value yet"
    TOO_YOUNG = "it is not known for the whole window yet"
    IMPOSSIBLE = "the exporter reports an impossible value for the device"
    FAILED = "the adapter failed; see its log"
    STALE = "the last value is too old"

    @property
    def passing(self) -> bool:
        """Tell a state that may end by itself from one that lasts."""
        return self in {
            Absence.NO_EXPORTER,
            Absence.TENANTS_UNKNOWN,
            Absence.NOT_ASSIGNED,
            Absence.DOWN,
            Absence.NO_SHARES,
            Absence.NO_VALUE,
            Absence.TOO_YOUNG,
            Absence.IMPOSSIBLE,
            Absence.FAILED,
            Absence.STALE,
        }


class Shares(msgspec.Struct, frozen=True, kw_only=True):
    """Inputs of the workload's share on one device.

    Attributes:
        own: W, busy share of the workload's containers, 0-1.
        total: B, busy share of everything on the device, host processes included, 0-1.
        holders: m, the workload's containers that hold the device.
        tenants: n, all containers that hold the device.
    """

    own: float
    total: float
    holders: int
    tenants: int

    def percent(self) -> float:
        """Return how much of the time available to the workload it used, 0-100."""
        free_of_others = 1.0 - min(1.0, max(0.0, self.total - self.own))
        available = max(self.holders / self.tenants, free_of_others)
        return min(100.0, 100.0 * self.own / available)


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """One device's contribution to an object's value: ``value``, or else ``absence``.

    Attributes:
        age_seconds: of the reading when it was sent; None before the first one.
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


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """An object's value over its devices: ``value`` and ``age_seconds``, or else ``absence``.

    Attributes:
        age_seconds: of the oldest contributing reading when it was sent.
    """

    parts: tuple[Part, ...] = ()
    value: float | None = None
    age_seconds: float = 0.0
    absence: Absence | None = None
    detail: str = ""


def folded(values: Sequence[float], how: Combine) -> float:
    """Return one value for several, of which there is at least one."""
    if how is Combine.MAX:
        return max(values)
    total = sum(values)
    return total / len(values) if how is Combine.MEAN else total


def combine(parts: Sequence[Part], how: Combine) -> Outcome:
    """Combine the parts, each of a different device, into one value.

    If any part has no value, neither has the whole: what the rest gives would look like a drop,
    and an autoscaler would act on it.
    """
    if not parts:
        return Outcome(absence=Absence.NOT_SELECTED)
    values: list[float] = []
    oldest = 0.0
    for part in parts:
        if part.absence is not None:
            detail = f"{part.device.uuid}: {part.detail}" if part.detail else part.device.uuid
            return Outcome(parts=tuple(parts), absence=part.absence, detail=detail)
        values.append(part.value or 0.0)
        oldest = max(oldest, part.age_seconds or 0.0)
    return Outcome(parts=tuple(parts), value=folded(values, how), age_seconds=oldest)
