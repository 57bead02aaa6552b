"""The latest readings and the state of each stream: what every source keeps in the same way."""

from collections.abc import Mapping

from adapter.sources.protocol import Listener, Reading, Stream, Target


class Board:
    """Readings and streams by exporter; tells listeners of changes."""

    def __init__(self) -> None:
        self._readings: dict[Target, Reading] = {}
        self._streams: dict[Target, Stream] = {}
        self._listeners: list[Listener] = []

    @property
    def readings(self) -> Mapping[Target, Reading]:
        """The latest reading of each wanted exporter."""
        return self._readings

    @property
    def streams(self) -> Mapping[Target, Stream]:
        """State of every wanted exporter."""
        return self._streams

    def listen(self, listener: Listener) -> None:
        """Call ``listener`` after each change of a reading."""
        self._listeners.append(listener)

    def want(self, target: Target) -> Stream:
        """Return the state of an exporter's stream; begin one if it is new."""
        return self._streams.setdefault(target, Stream())

    def publish(self, target: Target, reading: Reading) -> None:
        """Replace the reading of an exporter, unless it is not wanted any more."""
        if target in self._streams:
            self._readings[target] = reading
            self._tell(target)

    def forget(self, target: Target) -> None:
        """Drop an exporter with its reading."""
        self._streams.pop(target, None)
        if self._readings.pop(target, None) is not None:
            self._tell(target)

    def _tell(self, target: Target) -> None:
        for listener in self._listeners:
            listener(target)
