"""A node as whoever takes it out of service sees it: its marks, taints and conditions.

Readers of what nodes offer take ``slicewatch.kube.objects.Node``, which is a fraction of this.
"""

from datetime import datetime
from typing import Any, Final

import msgspec

from slicewatch.kube.objects import Kind, Metadata, Object


class NodeMetadata(Metadata, frozen=True, kw_only=True, rename="camel"):
    """Metadata with all annotations."""

    annotations: dict[str, str] = msgspec.field(default_factory=dict)  # type: ignore[assignment]  # others read a few keys only


class NodeCondition(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What somebody says of one aspect of a node. ``status`` is True, False or Unknown."""

    type: str
    status: str
    reason: str = ""
    message: str = ""
    last_heartbeat_time: datetime | None = None
    last_transition_time: datetime | None = None


class WholeNodeSpec(msgspec.Struct, frozen=True, kw_only=True):
    """Who may come to a node.

    Attributes:
        taints: as they are, with fields that we do not know: whoever changes one writes all.
    """

    unschedulable: bool = False
    taints: tuple[dict[str, Any], ...] = ()


class WholeNodeStatus(msgspec.Struct, frozen=True, kw_only=True):
    """What is said of a node, and what it offers."""

    conditions: tuple[NodeCondition, ...] = ()
    allocatable: dict[str, str] = {}


class WholeNode(Object, frozen=True, kw_only=True):
    """A node."""

    metadata: NodeMetadata
    spec: WholeNodeSpec = WholeNodeSpec()
    status: WholeNodeStatus = WholeNodeStatus()

    @property
    def annotations(self) -> dict[str, str]:
        """Its annotations."""
        return self.metadata.annotations

    def has_taint(self, key: str) -> bool:
        """Tell whether there is a taint with this key, whatever its effect."""
        return any(taint.get("key") == key for taint in self.spec.taints)

    def condition(self, kind: str) -> NodeCondition | None:
        """Return a condition by its type."""
        return next((one for one in self.status.conditions if one.type == kind), None)


WHOLE_NODE: Final = Kind(type=WholeNode, name="Node", plural="nodes")
