"""What the adapter derives from the objects of the cluster: one mapping per family.

Keys are the texts of a family's own labels, in the order in which the catalog declares them.
"""

from collections.abc import Mapping
from dataclasses import dataclass

Series = Mapping[tuple[str, ...], float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Requested:
    """What pods request, whether they have it or not."""

    devices: Series
    claiming_pods: Series


@dataclass(frozen=True, slots=True, kw_only=True)
class Devices:
    """What nodes offer, and how much of it is taken.

    Of every node, allocatable and overcommitted devices together are as many as the requested,
    free and cordoned ones.
    """

    allocatable: Series
    requested: Series
    free: Series
    cordoned: Series
    overcommitted: Series


@dataclass(frozen=True, slots=True, kw_only=True)
class Nodes:
    """The nodes that offer devices, one by one."""

    schedulable: Series


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending:
    """Pods without a node that request devices. A pod counts for each resource it requests."""

    pods: Series
    devices: Series
    longest_seconds: Series


@dataclass(frozen=True, slots=True, kw_only=True)
class Fragmentation:
    """What is free and still of no use, and whom another partition of GPUs would help."""

    stranded: Series
    repartition_pods: Series


@dataclass(frozen=True, slots=True, kw_only=True)
class Preemption:
    """What may be taken from those who hold it."""

    exposed: Series
    preemptible_ratio: Series


@dataclass(frozen=True, slots=True, kw_only=True)
class Quotas:
    """What namespaces may request; of what the API server does not count, nothing is known."""

    hard: Series
    used: Series
    used_ratio: Series


@dataclass(frozen=True, slots=True, kw_only=True)
class Pools:
    """How far tenants are in each other's way, over the devices of each pool of nodes."""

    mean_ratio: Series
    max_ratio: Series
    known_devices: Series
    contended_seconds_total: Series
