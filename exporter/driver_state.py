"""What a start and a stop of NVML change: rows of the board, and what we say of ourselves."""

import time

from exporter.measure.board import Board
from exporter.nvml.protocol import Driver, Slot
from slicewatch.catalog import events, own
from slicewatch.service.own_metrics import OwnMetrics


class DriverState:
    """Told by the supervisor, on the event loop."""

    def __init__(self, board: Board, metrics: OwnMetrics) -> None:
        self._board = board
        self._released = metrics.gauge(own.RELEASED)
        self._versions = metrics.gauge(own.DRIVER_INFO)
        self._listening = metrics.gauge(events.LISTENING)

    def begin(self, driver: Driver, slots: tuple[Slot, ...]) -> None:
        """NVML was started and found these GPUs."""
        self._released.clear()
        self._versions.clear()
        self._versions.labels(driver.driver, driver.nvml, driver.cuda).set(1)
        self._board.begin(driver.driver, slots, time.monotonic())

    def end(self, reason: str) -> None:
        """NVML cannot be started."""
        self._released.clear()
        self._versions.clear()
        self._board.end(reason)

    def hold(self, reason: str) -> None:
        """NVML was stopped because somebody asked for it; what was read last stays."""
        self._versions.clear()
        self._released.labels(reason).set(1)
        self._board.hold(time.monotonic())

    def listening(self, reason: str) -> None:
        """Events are listened to, or why not. May be told on any thread."""
        self._listening.clear()
        self._listening.labels(reason).set(not reason)
