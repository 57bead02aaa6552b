"""What goes wrong with a backend: one error for all of it, which becomes a refusal to a client."""

from enum import StrEnum

from adapter.api.status import Reason, Refusal, not_available


class FaultClass(StrEnum):
    """What kind of fault it is. The text completes 'the backend …'."""

    UNREACHABLE = "cannot be reached"
    DISTRUSTED = "shows a certificate that is not accepted"
    TIMEOUT = "did not answer in time"
    DENIED = "does not let the adapter in"
    REFUSED = "refuses the query"
    FAILED = "failed"
    MALFORMED = "gave an answer that cannot be used"
    TOO_LARGE = "gave an answer that is too large"
    CLOCK = "has another time than the adapter"
    CREDENTIALS = "cannot be asked, since credentials cannot be read"
    UNKNOWN = "is not configured"

    @property
    def of_the_query(self) -> bool:
        """Tell a fault that another query to the same backend would not have."""
        return self in {FaultClass.REFUSED, FaultClass.MALFORMED, FaultClass.TOO_LARGE}


class BackendError(Exception):
    """A backend gave no result.

    Args:
        backend: its name in the configuration; its URL is not repeated to clients.
        fault: the class of it.
        detail: what exactly; never has credentials in it.
    """

    def __init__(self, backend: str, fault: FaultClass, detail: str) -> None:
        self.backend = backend
        self.fault = fault
        self.detail = detail
        super().__init__(f"the backend {backend} {fault}: {detail}")

    def refusal(self, metric: str) -> Refusal:
        """Return what a client is told that asked for a metric."""
        reason = Reason.Timeout if self.fault is FaultClass.TIMEOUT else Reason.ServiceUnavailable
        return not_available(metric, self, reason=reason)
