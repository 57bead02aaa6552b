"""The patches that take a node out of service and back, each a single write.

A cordon and the mark that it is ours come and go together, so that no crash leaves one without
the other. Each patch names the version of the node that was decided on: if anybody has changed the
node since, it fails, and whoever asked reads and decides anew. What is not ours stays as it is.
"""

from collections.abc import Mapping
from typing import Any, Final

from health.names import CLEAR, CORDONED, STATE, TAINT
from slicewatch.kube.nodes import WHOLE_NODE, WholeNode
from slicewatch.kube.protocol import Kube

# Never NoExecute: that ends running work, whatever its disruption budget says.
EFFECT: Final = "NoSchedule"

Patch = dict[str, Any]


class Cordon:
    """The node's spec and our annotations.

    Args:
        kube: where the node is.
        taint: whether a cordon comes with our taint.

    All methods take the node as it was decided on, and the record that is to be on it (empty:
    the one that is there stays, see ``health.decision``), and return the node as it is then. Each may raise
    ``ConflictError``: the node has changed, read and decide anew; or another ``KubeError``: it is
    not known whether the write was made.
    """

    def __init__(self, kube: Kube, *, taint: bool) -> None:
        self._kube = kube
        self._taint = taint

    async def cordon(self, node: WholeNode, record: str, mark: str) -> WholeNode:
        """Let no new pods come, and mark that as ours."""
        return await self._write(node, cordoned(node, record, mark, taint=self._taint))

    async def uncordon(self, node: WholeNode, record: str) -> WholeNode:
        """Let pods come again."""
        return await self._write(node, uncordoned(node, record))

    async def give_up(self, node: WholeNode, record: str) -> WholeNode:
        """Take away what is ours, and leave whether pods may come to whoever decided that."""
        return await self._write(node, given_up(node, record))

    async def remember(self, node: WholeNode, record: str, *, cleared: bool = False) -> WholeNode:
        """Keep the record, if it has changed; ``cleared``: what a human asked for is done."""
        patch = remembered(node, record, cleared=cleared)
        return await self._write(node, patch) if patch else node

    async def _write(self, node: WholeNode, patch: Patch) -> WholeNode:
        return await self._kube.patch(WHOLE_NODE, node.metadata.name, patch)


def cordoned(node: WholeNode, record: str, mark: str, *, taint: bool) -> Patch:
    """Return the patch that cordons."""
    spec: Patch = {"unschedulable": True}
    if taint and not node.has_taint(TAINT):
        spec["taints"] = [*node.spec.taints, {"key": TAINT, "effect": EFFECT}]
    return _patch(node, {CORDONED: mark, **_kept(record)}, spec)


def uncordoned(node: WholeNode, record: str) -> Patch:
    """Return the patch that takes our cordon back."""
    spec = {"unschedulable": None, **_without_taint(node)}
    return _patch(node, {CORDONED: None, **_kept(record)}, spec)


def given_up(node: WholeNode, record: str) -> Patch:
    """Return the patch that removes our marks only."""
    return _patch(node, {CORDONED: None, **_kept(record)}, _without_taint(node))


def remembered(node: WholeNode, record: str, *, cleared: bool) -> Patch | None:
    """Return the patch that keeps the record; None where that changes nothing."""
    annotations: dict[str, str | None] = {}
    if node.annotations.get(STATE) != record:
        annotations |= _kept(record)
    if cleared and CLEAR in node.annotations:
        annotations[CLEAR] = None
    return _patch(node, annotations, {}) if annotations else None


def _patch(
    node: WholeNode, annotations: Mapping[str, str | None], spec: Mapping[str, object]
) -> Patch:
    version = node.metadata.resource_version
    metadata = {"resourceVersion": version, "annotations": dict(annotations)}
    return {"metadata": metadata} | ({"spec": dict(spec)} if spec else {})


def _kept(record: str) -> dict[str, str]:
    """Return the record; an empty one says that what is on the node must stay."""
    return {STATE: record} if record else {}


def _without_taint(node: WholeNode) -> Patch:
    """Return the taints of others: a list of taints can only be written as a whole."""
    if not node.has_taint(TAINT):
        return {}
    return {"taints": [one for one in node.spec.taints if one.get("key") != TAINT] or None}
