"""Events on the node and on the pods that hold a failing GPU: what people see first."""

import itertools
import time
from collections.abc import Iterable
from typing import Any, Final

from health.actions.series import Backlog, Series, Severity, Topic
from health.decision import Change, Fault
from slicewatch.kube.errors import KubeError, NotFoundError, UnavailableError
from slicewatch.kube.events import CLUSTER_NAMESPACE, EVENT, Involved
from slicewatch.kube.nodes import WholeNode
from slicewatch.kube.protocol import Kube
from slicewatch.kube.times import timestamp
from slicewatch.service import logs
from slicewatch.wire.evidence import Holder

log = logs.logger(__name__)

COMPONENT: Final = "gpu-health-monitor"
# What a fault's reason becomes when it is over.
OVER: Final = "Over"
# Names have at most 253 characters, of which the number takes some.
LONGEST_STEM: Final = 200


class Events:
    """The events of one monitor: ``say`` collects them, ``flush`` writes those that are due.

    Args:
        kube: where they go.
        node: where they come from.
    """

    def __init__(self, kube: Kube, node: str) -> None:
        self._kube = kube
        self._node = node
        self._backlog = Backlog()
        # Names have to differ from those of an earlier life on the same node.
        self._numbers = itertools.count(time.time_ns())

    @property
    def dropped(self) -> int:
        """How many events were never written."""
        return self._backlog.dropped

    def say(
        self,
        involved: Involved,
        reason: str,
        message: str,
        *,
        now: float,
        wall: float,
        severity: Severity = Severity.WARNING,
        gpu: str = "",
    ) -> None:
        """Say that something happened to an object.

        Args:
            involved: the object; see ``of_node`` and ``of_pod``.
            reason: in CamelCase; part of the documented contract.
            message: for people; cut at 1,024 bytes.
            now: seconds of a monotonic clock.
            wall: seconds since 1970.
            severity: as Kubernetes has it.
            gpu: uuid; the same on another GPU is another event.
        """
        topic = Topic(involved=involved, reason=reason, gpu=gpu)
        self._backlog.say(topic, severity, message, now=now, wall=wall)

    def say_changes(
        self, node: WholeNode, changes: Iterable[Change], *, now: float, wall: float
    ) -> None:
        """Say which faults have come and gone: of the node, and of the pods that hold the GPU."""
        changes = tuple(changes)
        about = [(of_node(node), change) for change in changes]
        about += [(of_pod(pod), change) for change in changes for pod in change.holders]
        for involved, change in about:
            fault = change.fault
            self.say(
                involved,
                fault.reason if change.raised else f"{fault.reason}{OVER}",
                _message(fault, node.metadata.name, raised=change.raised),
                severity=Severity.WARNING if change.raised else Severity.NORMAL,
                gpu=fault.gpu,
                now=now,
                wall=wall,
            )

    async def flush(self, now: float) -> None:
        """Write what is due. What the API server cannot take now waits for the next time."""
        for series in self._backlog.due(now):
            try:
                await self._write(series, now)
            except UnavailableError as error:
                log.warning("events wait", error=str(error))
                return
            except KubeError as error:
                # Such as the namespace of a pod that is being deleted: it will never be taken.
                self._backlog.give_up(series)
                log.warning("event given up", reason=series.topic.reason, error=str(error))

    async def _write(self, series: Series, now: float) -> None:
        namespace = series.topic.involved.namespace or CLUSTER_NAMESPACE
        if series.name:
            try:
                patch = _counts(series)
                await self._kube.patch(EVENT, series.name, patch, namespace=namespace)
            except NotFoundError:
                self._backlog.begin_anew(series)
            else:
                self._backlog.written(series, series.name, now)
            return
        name = f"{series.topic.involved.name[:LONGEST_STEM].rstrip('-.')}.{next(self._numbers):x}"
        await self._kube.create(EVENT, self._body(series, name, namespace), namespace)
        self._backlog.written(series, name, now)

    def _body(self, series: Series, name: str, namespace: str) -> dict[str, Any]:
        involved = series.topic.involved
        about = {
            "kind": involved.kind,
            "name": involved.name,
            "namespace": involved.namespace,
            "uid": involved.uid,
            "apiVersion": involved.api_version,
        }
        return {
            "metadata": {"name": name, "namespace": namespace},
            "involvedObject": {key: value for key, value in about.items() if value},
            "reason": series.topic.reason,
            "source": {"component": COMPONENT, "host": self._node},
            "reportingComponent": COMPONENT,
            "reportingInstance": self._node,
            "firstTimestamp": timestamp(series.first_wall),
            **_counts(series),
        }


def of_node(node: WholeNode) -> Involved:
    """Return a node as what an event is about."""
    return Involved(kind="Node", name=node.metadata.name, uid=node.metadata.uid)


def of_pod(holder: Holder) -> Involved:
    """Return a pod as what an event is about."""
    return Involved(kind="Pod", name=holder.pod, namespace=holder.namespace, uid=holder.uid)


def _counts(series: Series) -> dict[str, Any]:
    return {
        "type": str(series.severity),
        "message": series.message,
        "count": series.count,
        "lastTimestamp": timestamp(series.last_wall),
    }


def _message(fault: Fault, node: str, *, raised: bool) -> str:
    which = f"GPU {fault.index} ({fault.gpu}) of node {node}" if fault.gpu else f"node {node}"
    if fault.gpu and fault.index is None:
        which = f"GPU {fault.gpu} of node {node}"
    return f"{which}: {fault.message}" + ("" if raised else " (over)")
