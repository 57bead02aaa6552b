"""What the adapter sees of the cluster.

The numbers are defined in ``docs/concepts/cluster.md``. Each family counts one thing, so that an
autoscaler, which adds up all series of a metric, gets a sum that means something.
"""

from typing import Final

from slicewatch.catalog.model import RATIO, Cluster, Label, Unit
from slicewatch.catalog.readings.cluster import (
    Devices,
    Fragmentation,
    Nodes,
    Pending,
    Pools,
    Preemption,
    Quotas,
    Requested,
)

REQUESTED: Final = Cluster(name="requested", reading=Requested, sparse=True)
DEVICES: Final = Cluster(name="devices", reading=Devices)
NODES: Final = Cluster(name="nodes", reading=Nodes)
PENDING: Final = Cluster(name="pending", reading=Pending, sparse=True)
FRAGMENTATION: Final = Cluster(name="fragmentation", reading=Fragmentation, sparse=True)
PREEMPTION: Final = Cluster(name="preemption", reading=Preemption)
QUOTAS: Final = Cluster(name="quotas", reading=Quotas)
POOLS: Final = Cluster(name="pools", reading=Pools)

GROUP: Final = (
    Label.PRODUCT,
    Label.MIG_CONFIG,
    Label.REPLICAS,
    Label.RESOURCE,
    Label.PROFILE,
)
_NODE: Final = (Label.NODE, Label.PRODUCT, Label.MIG_CONFIG, Label.REPLICAS, Label.POOL)
_WAITING: Final = (Label.NAMESPACE, Label.RESOURCE, Label.PRIORITY_CLASS, Label.REASON)
_QUOTA: Final = (Label.NAMESPACE, Label.QUOTA, Label.KIND, Label.RESOURCE)

OF_REQUESTS: Final = (
    REQUESTED.gauge(
        "gpu_pod_requests",
        help="Devices requested by pods, by resource, phase and priority class of the pod.",
        unit=Unit.NONE,
        value=lambda found: found.devices,
        labels=(Label.NAMESPACE, Label.RESOURCE, Label.PHASE, Label.PRIORITY_CLASS),
    ),
    REQUESTED.gauge(
        "gpu_cluster_claiming_pods",
        help="Pods with resource claims, through which they may get GPUs beside what they request.",
        unit=Unit.NONE,
        value=lambda found: found.claiming_pods,
        labels=(Label.NAMESPACE, Label.PHASE, Label.PRIORITY_CLASS),
    ),
)
OF_DEVICES: Final = (
    DEVICES.gauge(
        "gpu_cluster_allocatable_devices",
        help="Devices that nodes offer to pods, as the scheduler counts them.",
        unit=Unit.NONE,
        value=lambda found: found.allocatable,
        labels=GROUP,
    ),
    DEVICES.gauge(
        "gpu_cluster_requested_devices",
        help="Devices requested by pods that have a node and have not ended.",
        unit=Unit.NONE,
        value=lambda found: found.requested,
        labels=GROUP,
    ),
    DEVICES.gauge(
        "gpu_cluster_free_devices",
        help="Devices that no pod has requested, on nodes that take pods.",
        unit=Unit.NONE,
        value=lambda found: found.free,
        labels=GROUP,
    ),
    DEVICES.gauge(
        "gpu_cluster_cordoned_devices",
        help="Devices that no pod has requested, on nodes that take no pods.",
        unit=Unit.NONE,
        value=lambda found: found.cordoned,
        labels=GROUP,
    ),
    DEVICES.gauge(
        "gpu_cluster_overcommitted_devices",
        help="Devices that pods of the node have requested and that it no longer offers.",
        unit=Unit.NONE,
        value=lambda found: found.overcommitted,
        labels=(Label.NODE, Label.RESOURCE),
    ),
    NODES.gauge(
        "gpu_cluster_node_schedulable",
        help="1 if the GPU node takes pods, 0 if it is cordoned.",
        unit=Unit.NONE,
        value=lambda found: found.schedulable,
        labels=_NODE,
    ),
)
OF_PENDING: Final = (
    PENDING.gauge(
        "gpu_cluster_pending_pods",
        help="Pods without a node that request devices, by why they have none.",
        unit=Unit.NONE,
        value=lambda found: found.pods,
        labels=_WAITING,
    ),
    PENDING.gauge(
        "gpu_cluster_pending_devices",
        help="Devices that pods without a node request, by why they have none.",
        unit=Unit.NONE,
        value=lambda found: found.devices,
        labels=_WAITING,
    ),
    PENDING.gauge(
        "gpu_cluster_longest_pending_seconds",
        help="Time since the oldest of the pods without a node was created.",
        unit=Unit.SECONDS,
        value=lambda found: found.longest_seconds,
        labels=(Label.NAMESPACE, Label.RESOURCE),
    ),
)
OF_FRAGMENTATION: Final = (
    FRAGMENTATION.gauge(
        "gpu_cluster_stranded_devices",
        help="Free devices that, on their nodes, are of no use to any of the pods that wait.",
        unit=Unit.NONE,
        value=lambda found: found.stranded,
        labels=GROUP,
    ),
    FRAGMENTATION.gauge(
        "gpu_cluster_repartition_pods",
        help="Pods that wait for MIG devices and would fit if free parts of GPUs were cut anew.",
        unit=Unit.NONE,
        value=lambda found: found.repartition_pods,
        labels=(Label.NAMESPACE, Label.RESOURCE, Label.PROFILE),
    ),
)
OF_PREEMPTION: Final = (
    PREEMPTION.gauge(
        "gpu_cluster_preemption_exposed_devices",
        help="Devices of pods with a lower priority than a waiting pod that may preempt them.",
        unit=Unit.NONE,
        value=lambda found: found.exposed,
        labels=(Label.RESOURCE,),
    ),
    PREEMPTION.gauge(
        "gpu_cluster_preemptible_ratio",
        help="Share of the requested devices that pods of the highest priority class could preempt.",
        unit=Unit.RATIO,
        value=lambda found: found.preemptible_ratio,
        labels=(Label.RESOURCE,),
        limits=RATIO,
    ),
)
OF_QUOTAS: Final = (
    QUOTAS.gauge(
        "gpu_cluster_quota_hard_devices",
        help="Devices that a ResourceQuota lets the pods of its namespace have.",
        unit=Unit.NONE,
        value=lambda found: found.hard,
        labels=_QUOTA,
    ),
    QUOTAS.gauge(
        "gpu_cluster_quota_used_devices",
        help="Devices that the pods of the namespace have, as counted for the ResourceQuota.",
        unit=Unit.NONE,
        value=lambda found: found.used,
        labels=_QUOTA,
    ),
    QUOTAS.gauge(
        "gpu_cluster_quota_used_ratio",
        help="Used part of a ResourceQuota, more than 1 after it was lowered.",
        unit=Unit.RATIO,
        value=lambda found: found.used_ratio,
        labels=_QUOTA,
    ),
)
OF_POOLS: Final = (
    POOLS.gauge(
        "gpu_cluster_pool_contention_mean_ratio",
        help="Mean of gpu_contention_ratio over the devices of the pool for which it is known.",
        unit=Unit.RATIO,
        value=lambda found: found.mean_ratio,
        labels=(Label.POOL,),
        limits=RATIO,
    ),
    POOLS.gauge(
        "gpu_cluster_pool_contention_max_ratio",
        help="Highest gpu_contention_ratio of a device of the pool.",
        unit=Unit.RATIO,
        value=lambda found: found.max_ratio,
        labels=(Label.POOL,),
        limits=RATIO,
    ),
    POOLS.gauge(
        "gpu_cluster_pool_contention_known_devices",
        help="Devices of the pool for which gpu_contention_ratio is known now.",
        unit=Unit.NONE,
        value=lambda found: found.known_devices,
        labels=(Label.POOL,),
    ),
    POOLS.counter(
        "gpu_cluster_pool_contended_seconds_total",
        help="Increase of gpu_contended_seconds_total over the devices of the pool, added up.",
        unit=Unit.SECONDS,
        value=lambda found: found.contended_seconds_total,
        labels=(Label.POOL,),
    ),
)
METRICS: Final = (
    *OF_REQUESTS, *OF_DEVICES, *OF_PENDING, *OF_FRAGMENTATION, *OF_PREEMPTION, *OF_QUOTAS, *OF_POOLS,
)  # fmt: skip
