"""From frames to readings: each snapshot is paired with the layout whose rows it fills."""

from adapter.sources.lag import Lag
from adapter.sources.source import Reading
from slicewatch.wire.layout import Layout
from slicewatch.wire.snapshot import check_shape, decode


class UnknownLayoutError(Exception):
    """A snapshot refers to a layout that this stream never sent: reopen the stream."""


class Assembly:
    """Remembers the layout of one stream. Start each stream with a new one."""

    def __init__(self) -> None:
        self._layout: Layout | None = None
        self._lag = Lag()

    def take(self, line: bytes, received_at: float) -> Reading:
        """Return the frame of a line as a reading.

        Raises:
            UnknownLayoutError: its layout, or the run that numbered it, is not the known one.
            WireError: it is no frame, or its columns do not fit the layout.
        """
        frame = decode(line)
        layout = frame.layout or self._layout
        snapshot = frame.snapshot
        if layout is None or (layout.run, layout.number) != (snapshot.run, snapshot.layout):
            known = "none" if layout is None else f"{layout.number} of run {layout.run}"
            raise UnknownLayoutError(
                f"snapshot of layout {snapshot.layout} of run {snapshot.run}; the known layout is {known}"
            )
        if frame.layout is None:  # A frame with its layout was checked when it was decoded.
            check_shape(layout, snapshot)
        self._layout = layout
        ages = [age for age in snapshot.ages if age is not None]
        return Reading(
            layout=layout,
            line=line,
            received_at=self._lag.undelayed(snapshot.clock, received_at),
            oldest_seconds=max(ages, default=None),
        )
