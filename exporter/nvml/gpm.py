"""From samples of GPM's counters to readings: two samples of a device, and the mean between them.

Counters only mean something in pairs, so the pairs of a session are kept here, whoever takes the
samples. No pair spans a change of layout: it would compare an instance with another one.
"""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Final, Generic, Protocol, TypeVar

from exporter.nvml.protocol import Failed, Lost, Outcome, Unsupported, Value
from slicewatch.catalog.gpm import ASKED, GPM
from slicewatch.catalog.readings.gpm import Gpm, GpmMetric
from slicewatch.catalog.readings.utilization import Utilization
from slicewatch.catalog.utilization import UTILIZATION
from slicewatch.wire.layout import Device

# The driver refreshes its counters every 100 ms. A tick is a second, give or take: a bound of
# a full second would skip every second one.
SHORTEST_PAIR_US: Final = 950_000
# What was before so long a silence is not what a reader of the present value means.
LONGEST_PAIR_US: Final = 600_000_000

SHARED: Final = Unsupported("shared_gpu_instance")
# Why a driver has no GPM for a board: nothing that somebody could mend.
_NO_GPM: Final = frozenset({Unsupported("device"), Unsupported("driver")})

# Probes that come from counters, on some devices at least.
COUNTED: Final = (*ASKED, UTILIZATION.name)


def comes_from_counters(probe: str, device: Device) -> bool:
    """Tell whether a probe of a device is read from GPM: its own, and utilization under MIG."""
    return probe in ASKED or (probe == UTILIZATION.name and (device.is_mig or device.mig_enabled))


class Sample(Protocol):
    """Counters at one moment."""

    @property
    def at_us(self) -> int:
        """When that was, on the clock of who took it."""
        ...


S = TypeVar("S", bound=Sample)


class Counters(Protocol[S]):
    """Who takes the samples. It never raises for what a device or driver did."""

    def now_us(self) -> int:
        """Return the time by the clock of the samples."""
        ...

    def take(self, device: Device, spare: S | None) -> Outcome[S]:
        """Take a sample of a GPU or a GPU instance, in the place of one that nobody needs."""
        ...

    def means(self, earlier: S, later: S, asked: tuple[GpmMetric, ...]) -> Outcome[Gpm]:
        """Return the means between two samples; what fails alone is left out."""
        ...

    def free(self, sample: S) -> None:
        """Give up a sample."""
        ...


@dataclass(slots=True)
class _Pair(Generic[S]):
    """What is known of one device.

    Attributes:
        spare: one that was overtaken, whose memory the next sample takes.
        cycle: in which it was last looked after, and ``refusal`` what that brought instead of a
            sample.
        means: what was computed between the two samples, by probe.
        counted_us: up to when its activity went into a reading of utilization.
    """

    earlier: S | None = None
    later: S | None = None
    spare: S | None = None
    cycle: int = 0
    refusal: Unsupported | Failed | Lost | None = None
    means: dict[str, Outcome[Gpm]] = field(default_factory=dict)
    counted_us: int | None = None


class GpmPairs(Generic[S]):
    """The pairs of samples of one session, one per device. One thread at a time may use it.

    All probes of a cycle are read from the same pair, so that a device is sampled once.
    """

    def __init__(self, counters: Counters[S]) -> None:
        self._counters = counters
        self._cycle = 0
        self._devices: tuple[Device, ...] = ()
        # By uuid, which is quick; another device of the same one is another layout.
        self._shared: frozenset[str] = frozenset()
        self._pairs: dict[str, _Pair[S]] = {}

    def begin(self, devices: tuple[Device, ...]) -> None:
        """Begin a cycle with the devices that were found; if others were before, start anew."""
        self._cycle += 1
        if devices == self._devices:
            return
        self.close()
        self._devices = devices
        residents = Counter(device.gpu_instance for device in devices if device.is_mig)
        self._shared = frozenset(
            d.uuid for d in devices if d.is_mig and residents[d.gpu_instance] > 1
        )

    def close(self) -> None:
        """Free all samples. Has to come before NVML is shut down."""
        for pair in self._pairs.values():
            self._free(pair.earlier)
            self._free(pair.later)
            self._free(pair.spare)
        self._pairs = {}
        self._devices = ()

    def read(self, probe: str, device: Device) -> Outcome[Any]:
        """Return a reading, without values while there is only one sample.

        Compute instances that share a GPU instance have nothing of their own. Where there is no
        GPM, the reason for utilization is that of all that is not measured under MIG.

        Args:
            probe: the name of one that comes from counters.
            device: among those that the cycle began with.
        """
        if device.uuid in self._shared:
            return SHARED
        pair = self._renewed(device)
        return self._means(pair, probe) if probe in ASKED else self._utilization(pair, device)

    def _utilization(self, pair: _Pair[S], device: Device) -> Outcome[Utilization]:
        """Return how long the graphics or compute engine had work; each time is in one reading."""
        outcome = self._means(pair, GPM.name)
        if not isinstance(outcome, Value):
            absent = Unsupported("mig_instance" if device.is_mig else "mig_enabled")
            return absent if outcome in _NO_GPM else outcome
        percent = outcome.value.percent(GpmMetric.GRAPHICS)
        if pair.earlier is None or pair.later is None or percent is None:
            return Value(Utilization((), None))
        since, at = pair.earlier.at_us, pair.later.at_us
        if at == pair.counted_us:
            return Value(Utilization((), at))
        pair.counted_us = at
        return Value(Utilization(((at, percent),), since, longest_period_us=LONGEST_PAIR_US))

    def _renewed(self, device: Device) -> _Pair[S]:
        """Return the pair of a device, with a new sample if it is time for one."""
        pair = self._pairs.get(device.uuid)
        if pair is None:
            pair = self._pairs[device.uuid] = _Pair()
        if pair.cycle == self._cycle:
            return pair
        pair.cycle, pair.refusal = self._cycle, None
        before = pair.later
        if before is not None and self._counters.now_us() - before.at_us < SHORTEST_PAIR_US:
            return pair
        taken = self._counters.take(device, pair.spare)
        if isinstance(taken, Value):
            self._shift(pair, taken.value)
        else:
            pair.refusal = taken
        return pair

    def _shift(self, pair: _Pair[S], sample: S) -> None:
        pair.spare, pair.earlier, pair.later = pair.earlier, pair.later, sample
        pair.means.clear()
        if pair.earlier and sample.at_us - pair.earlier.at_us > LONGEST_PAIR_US:
            self._forget_earlier(pair)

    def _means(self, pair: _Pair[S], probe: str) -> Outcome[Gpm]:
        if pair.refusal is not None:
            return pair.refusal
        if pair.earlier is None or pair.later is None:
            return Value(Gpm({}))
        known = pair.means.get(probe)
        if known is None:
            known = self._counters.means(pair.earlier, pair.later, ASKED[probe])
            pair.means[probe] = known
            if isinstance(known, Failed | Lost):
                # Two samples that do not fit together never will.
                self._forget_earlier(pair)
        return known

    def _forget_earlier(self, pair: _Pair[S]) -> None:
        self._free(pair.earlier)
        pair.earlier = None

    def _free(self, sample: S | None) -> None:
        if sample is not None:
            self._counters.free(sample)
