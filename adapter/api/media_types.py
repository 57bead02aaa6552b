"""Whether a client takes JSON, the only thing that is served.

Controllers would rather have protobuf, and kubectl a table, but both name JSON or anything as
their last choice; at our sizes neither gains anything by more. Nothing is compressed either: the
longest list takes more time to compress than to send within a cluster, and that time is everybody's.
"""

from functools import lru_cache
from typing import Final

JSON: Final = "application/json"
# The most specific first: it is the one that counts.
_ACCEPTABLE: Final = (JSON, "application/*", "*/*")
_TRANSFORMING: Final = "meta.k8s.io"


@lru_cache(maxsize=256)
def accepts_json(accept: str) -> bool:
    """Tell whether JSON is among what an Accept header takes; an empty one takes anything.

    A choice that wants objects made into something else, such as a table, is passed over. What
    aggregated discovery is asked for by is not one of those: its client reads from the type of
    the answer that it has to ask in another way.
    """
    if not accept.strip():
        return True
    weights: dict[str, float] = {}
    for part in accept.lower().split(","):
        media, *written = part.split(";")
        parameters = dict(_parameter(text) for text in written)
        if "as" in parameters and parameters.get("g") == _TRANSFORMING:
            continue
        media = media.strip()
        weights[media] = max(weights.get(media, 0.0), _weight(parameters.get("q", "")))
    return next((weights[media] for media in _ACCEPTABLE if media in weights), 0.0) > 0


def _parameter(text: str) -> tuple[str, str]:
    name, _, value = text.partition("=")
    return name.strip(), value.strip()


def _weight(text: str) -> float:
    """Return how much a media type is wanted; what is no weight does not restrict it."""
    try:
        weight = float(text)
    except ValueError:
        return 1.0
    return weight if 0.0 <= weight <= 1.0 else 1.0
