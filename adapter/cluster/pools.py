"""Contention per pool of nodes, from what exporters report of each device."""

from collections import defaultdict
from collections.abc import Callable, Iterator

from adapter.join import Join
from adapter.sources.request import CONTENTION
from adapter.view import NodeView, View
from slicewatch.catalog.readings.cluster import Pools as Counted

RATIO, SECONDS = CONTENTION

# The life of an exporter and a device: its counters start anew with every life.
_Life = tuple[str, str]


class Pools:
    """Contention by pool.

    The counters of devices come and go with their nodes, so their sum is no counter. What is
    kept is the sum of their increases, from one look at them to the next.

    Args:
        view: what exporters report.
        pool_of: the pool of a node; empty for those that are in none.
    """

    def __init__(self, view: View, pool_of: Callable[[str], str]) -> None:
        self._view = view
        self._pool_of = pool_of
        self._lives: dict[_Life, float] = {}
        self._contended: dict[str, float] = defaultdict(float)

    def counted(self) -> Counted:
        """Return the contention by pool."""
        ratios: dict[str, list[float]] = defaultdict(list)
        lives: dict[_Life, float] = {}
        for node in self._view.nodes:
            here = self._view.node(node)
            if here is not None:
                pool = self._pool_of(node)
                lives |= self._grow(pool, here.join)
                for ratio in _fresh(self._view, here):
                    ratios[pool].append(ratio)
        self._lives = lives
        return self._series(ratios)

    def _grow(self, pool: str, here: Join) -> dict[_Life, float]:
        """Add what a node's counters have grown by, and return what they are now."""
        now: dict[_Life, float] = {}
        devices = here.layout.devices
        column = here.snapshot.values.get(SECONDS.name, [None] * len(devices))
        for device, total in zip(devices, column, strict=True):
            if total is not None and SECONDS.limits.hold(total):
                life = (here.layout.run, device.uuid)
                now[life] = total
                self._contended[pool] += max(0.0, total - self._lives.get(life, total))
        return now

    def _series(self, ratios: dict[str, list[float]]) -> Counted:
        return Counted(
            mean_ratio={(pool,): sum(known) / len(known) for pool, known in ratios.items()},
            max_ratio={(pool,): max(known) for pool, known in ratios.items()},
            known_devices={(pool,): len(known) for pool, known in ratios.items()},
            contended_seconds_total={(pool,): total for pool, total in self._contended.items()},
        )


def _fresh(view: View, here: NodeView) -> Iterator[float]:
    """Yield the contention ratio of each device whose reading is not too old."""
    now, shot = view.monotonic(), here.join.snapshot
    column = shot.values.get(RATIO.name, ())
    for ratio, age, up in zip(column, shot.ages, shot.up, strict=False):
        if ratio is None or age is None or not up or view.expires_at(here, age) <= now:
            continue
        if RATIO.limits.hold(ratio):
            yield ratio
