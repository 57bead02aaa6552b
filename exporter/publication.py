"""What the exporter publishes now: the last snapshot, and its renderings, each made once.

Renderings are made when somebody first asks for one: ticks are more frequent than scrapes.
"""

import asyncio
import gzip
import time
from collections.abc import Callable

import msgspec

from exporter.dcgm.names import AliasPage
from exporter.page import columns_of, page_of
from slicewatch.catalog.dcgm import HostLabel
from slicewatch.catalog.model import Metric
from slicewatch.service.exposition import Format, Page, by_family
from slicewatch.wire import snapshot as wire
from slicewatch.wire.layout import Layout
from slicewatch.wire.snapshot import Frame, Snapshot

Families = frozenset[str] | None


class Publication:
    """The latest layout and snapshot, for any number of readers on the event loop.

    Args:
        metrics: families of ``/metrics``.
        aliases: how dcgm-exporter's names, shown beside them, label the host; None without them.
        own: renders the metrics about this process, per format.
    """

    def __init__(
        self,
        metrics: tuple[Metric[object], ...],
        own: Callable[[Format], bytes],
        clock: Callable[[], float] = time.monotonic,
        aliases: HostLabel | None = None,
    ) -> None:
        self._metrics = metrics
        self._aliases = aliases
        self._own = own
        self._clock = clock
        self._changed = asyncio.Event()
        self._page: tuple[Layout, Page, AliasPage | None] | None = None
        self._rendered: dict[tuple[Format, bool], bytes] = {}
        self._rendered_for: tuple[int, int] | None = None
        self._lines: dict[tuple[bool, Families], bytes] = {}
        self.layout: Layout | None = None
        self.snapshot: Snapshot | None = None
        self._taken_at = self._clock()

    def show(self, metrics: tuple[Metric[object], ...]) -> None:
        """Show other families from now on."""
        self._metrics = metrics
        self._page = None
        self._rendered.clear()

    def publish(self, layout: Layout, snapshot: Snapshot) -> None:
        """Replace what is published and wake whoever waits for it."""
        self.layout, self.snapshot = layout, snapshot
        self._taken_at = self._clock()
        self._lines.clear()
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    def age_seconds(self) -> float:
        """Return how long ago the last snapshot was taken."""
        return self._clock() - self._taken_at

    async def wait(self) -> None:
        """Return when the next snapshot is published."""
        await self._changed.wait()

    def line(self, families: Families = None, *, with_layout: bool) -> bytes:
        """Return the current frame as a line of the stream; empty before the first.

        Args:
            families: those that the reader asked for; None for all.
            with_layout: the reader lacks it.
        """
        if self.layout is None or self.snapshot is None:
            return b""
        key = (with_layout, families)
        if key not in self._lines:
            layout = self.layout if with_layout else None
            shown = _narrowed(self.snapshot, families)
            self._lines[key] = wire.encode(Frame(layout=layout, snapshot=shown))
        return self._lines[key]

    def frame_now(self, families: Families = None) -> bytes:
        """Return the current frame with its layout and with ages as of now."""
        if self.layout is None or self.snapshot is None:
            return b""
        passed = self.age_seconds()
        ages = [None if age is None else age + passed for age in self.snapshot.ages]
        shown = _narrowed(self.snapshot, families)
        snapshot = msgspec.structs.replace(shown, ages=ages, clock=self._clock())
        return wire.encode(Frame(layout=self.layout, snapshot=snapshot))

    def exposition(self, form: Format, *, compressed: bool) -> bytes:
        """Return the page of ``/metrics``.

        Made once per snapshot, format and encoding; where snapshots stop coming, once a second,
        so that the page does not hide how old it is.
        """
        sequence = self.snapshot.sequence if self.snapshot else 0
        current = (sequence, int(self.age_seconds()))
        if self._rendered_for != current:
            self._rendered_for = current
            self._rendered.clear()
        key = (form, compressed)
        if key not in self._rendered:
            plain = self._rendered.get((form, False)) or self._render(form)
            self._rendered[form, False] = plain
            if compressed:
                self._rendered[key] = gzip.compress(plain, compresslevel=1, mtime=0)
        return self._rendered[key]

    def _render(self, form: Format) -> bytes:
        if self.layout is None or self.snapshot is None:
            return self._own(form)
        if self._page is None or self._page[0] is not self.layout:
            other = None if self._aliases is None else AliasPage(self.layout, self._aliases)
            self._page = (self.layout, page_of(self.layout, self._metrics), other)
        _, page, aliases = self._page
        columns = by_family(columns_of(self.snapshot, self.age_seconds()))
        text = page.render(columns, form)
        if aliases is not None:
            text += aliases.render(columns, form)
        return text.encode() + self._own(form)


def _narrowed(snapshot: Snapshot, families: Families) -> Snapshot:
    return snapshot if families is None else wire.narrowed(snapshot, families)
