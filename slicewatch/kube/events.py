"""Events of ``v1``: what ``kubectl describe`` shows below an object."""

from datetime import datetime
from typing import Final

import msgspec

from slicewatch.kube.objects import Kind, Object

# Events of objects without a namespace are kept here.
CLUSTER_NAMESPACE: Final = "default"
LONGEST_MESSAGE_BYTES: Final = 1024


class Involved(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The object that an event is about. Without its ``uid``, few tools find the event."""

    kind: str
    name: str
    namespace: str = ""
    uid: str = ""
    api_version: str = "v1"


class Event(Object, frozen=True, kw_only=True, rename="camel"):
    """Something that happened to an object, ``count`` times. ``type`` is Normal or Warning."""

    involved_object: Involved
    type: str = ""
    reason: str = ""
    message: str = ""
    count: int = 0
    first_timestamp: datetime | None = None
    last_timestamp: datetime | None = None


EVENT: Final = Kind(type=Event, name="Event", plural="events")
