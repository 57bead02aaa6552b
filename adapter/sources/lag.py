"""How long a frame was on its way, without comparing clocks of two machines.

Frames can pile up in the buffers of a slow connection and then arrive in order, each looking new.
The sender states its monotonic clock in every frame. The smallest difference between that clock
and ours, seen so far, belongs to a frame that did not wait; a frame with a larger difference was
delayed by the excess.
"""

from typing import Final

# Two clocks drift apart: the smallest difference is allowed to grow this much per second, which is
# more than any clock drifts and less than any connection lags.
DRIFT: Final = 2e-4


class Lag:
    """The delay of the frames of one connection."""

    def __init__(self) -> None:
        self._offset: float | None = None
        self._at = 0.0

    def undelayed(self, sent: float | None, received: float) -> float:
        """Return when a frame would have arrived if it had not waited on the way.

        Args:
            sent: the sender's clock in the frame; None if it states none.
            received: our clock at the receipt of the frame.
        """
        if sent is None:
            return received
        offset = received - sent
        if self._offset is not None:
            offset = min(offset, self._offset + DRIFT * (received - self._at))
        self._offset, self._at = offset, received
        return sent + offset
