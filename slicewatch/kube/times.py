"""Times as Kubernetes writes them."""

from datetime import UTC, datetime
from functools import lru_cache


@lru_cache(maxsize=1024)
def timestamp(epoch_seconds: float) -> str:
    """Return a time as RFC 3339 in UTC, in whole seconds."""
    return datetime.fromtimestamp(epoch_seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
