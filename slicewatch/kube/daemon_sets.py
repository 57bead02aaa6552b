"""DaemonSets of ``apps/v1``, for who wants to know on how many nodes one runs."""

from typing import Final

import msgspec

from slicewatch.kube.objects import Kind, Object


class DaemonSetStatus(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """How many nodes should run its pod, and on how many it is ready."""

    desired_number_scheduled: int = 0
    number_ready: int = 0


class DaemonSet(Object, frozen=True, kw_only=True):
    """A DaemonSet."""

    status: DaemonSetStatus = DaemonSetStatus()


DAEMON_SET: Final = Kind(type=DaemonSet, name="DaemonSet", plural="daemonsets", group="apps")
