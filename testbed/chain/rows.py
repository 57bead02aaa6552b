"""The timeline of pools over hours: a row whenever something changes, printed and kept in a file.

Why a size was chosen stands beside it, in the words of the HPA's event, which Kubernetes forgets.
"""

from collections.abc import Sequence
from typing import IO, Final

from testbed.chain.course import LATENCY, UTILIZATION, Course, Moment
from testbed.chain.pools import Pool
from testbed.cluster import waiting
from testbed.cluster.waiting import ClusterError

ROW_SECONDS: Final = 60.0
"""Without a change there is a row after so long."""
_EVENT_SECONDS: Final = 10.0

HEADER: Final = (
    "     t  pool    requests/s  busy devices  replicas  wanted  utilization  latency"
    "  limited by        event"
)


class Rows:
    """Writes what a course notes of pools, as it happens.

    Args:
        course: where it is noted.
        chosen: the pools.
        file: for all that is printed.
    """

    def __init__(self, course: Course, chosen: Sequence[Pool], file: IO[str]) -> None:
        self._course = course
        self._file = file
        self._last: dict[str, Moment] = {}
        self._seen = dict.fromkeys(chosen, 0)
        self._told: dict[Pool, set[str]] = {pool: set() for pool in chosen}

    def say(self, text: str) -> None:
        """Write something that is not of a pool, with the time."""
        self.write(f"{self._course.seconds():6.0f}  -- {text}")

    def write(self, text: str) -> None:
        """Write lines as they are."""
        print(text, flush=True)
        print(text, file=self._file, flush=True)

    def follow(self) -> None:
        """Write what became of the pools since the last time."""
        for pool, seen in self._seen.items():
            moments = self._course.of(pool)
            self._seen[pool] = len(moments)
            for moment in moments[seen:]:
                self._note(pool, moment)

    def _note(self, pool: Pool, moment: Moment) -> None:
        last = self._last.get(pool.name)
        if last is not None and not _differs(last, moment):
            return
        self._last[pool.name] = moment
        # None are wanted before an HPA's first look.
        scaled = last is not None and last.wanted not in {0, moment.wanted}
        self.write(_row(pool, moment, self._reason(pool, moment.wanted) if scaled else ""))

    def _reason(self, pool: Pool, size: int) -> str:
        """Return why a size was chosen; its event may come a little after the size."""
        begin, told = f"New size: {size}; reason: ", self._told[pool]

        def found() -> str | None:
            # On the way down, the event of the way up to the same size is still there.
            said = (one for one in self._course.rescales(pool) if begin in one)
            return next((one for one in said if one not in told), None)

        try:
            event = waiting.until(
                found, what=f"an event of size {size}", seconds=_EVENT_SECONDS, every_seconds=1
            )
        except ClusterError as error:  # A timeline without it is worth more than none.
            return f"({error})"
        told.add(event)
        return event.partition(begin)[2]


def _differs(last: Moment, now: Moment) -> bool:
    """Tell whether something changed, other than the values, or long enough has passed."""

    def standing(moment: Moment) -> tuple[object, ...]:
        return (
            moment.requests_per_second, moment.replicas, moment.wanted, moment.limit,
            moment.active, moment.values.keys(),
        )  # fmt: skip

    return standing(last) != standing(now) or now.at_seconds - last.at_seconds >= ROW_SECONDS


def _row(pool: Pool, moment: Moment, event: str) -> str:
    utilization, latency = (moment.values.get(name) for name in (UTILIZATION, LATENCY))
    return (
        f"{moment.at_seconds:6.0f}  {pool.name:6}  {moment.requests_per_second:10.1f}"
        f"  {f'{sum(moment.busy):.1f} of {len(moment.busy)}':>12}"
        f"  {moment.replicas:8}  {moment.wanted:6}  {_shown(utilization, ' %'):>11}"
        f"  {_shown(latency, ' ms'):>7}  {moment.limit:16}  {event}"
    ).rstrip()


def _shown(value: float | None, unit: str) -> str:
    return "–" if value is None else f"{value:.0f}{unit}"
