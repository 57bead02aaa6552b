"""What the cluster has, what pods want of it, and what is held without being used."""

from typing import Final

from alerts.model import Alert, Group, Severity, Source
from alerts.series import PER_CLUSTER, PER_DEVICE, PER_NODE
from alerts.thresholds import IDLE_RATIO, PENDING_SECONDS, QUOTA_RATIO

_ADAPTER: Final = frozenset({Source.ADAPTER})

GROUP: Final = Group(
    name="capacity",
    title="Capacity",
    intent="Pods wait for GPUs, GPUs wait for work, or a quota decides soon.",
    rules=(
        Alert(
            name="GPUPodsPending",
            expr=f"""
            max by ({PER_CLUSTER}, namespace, resource) (gpu_cluster_longest_pending_seconds)
            > {PENDING_SECONDS}
            """,
            hold="5m",
            severity=Severity.WARNING,
            summary="Pods of {{ $labels.namespace }} have waited long for {{ $labels.resource }}.",
            description="The oldest was created {{ $value | humanizeDuration }} ago and has no node."
            " gpu_cluster_pending_pods says why, by reason.",
            sources=_ADAPTER,
        ),
        Alert(
            name="GPUPodsFitAfterRepartition",
            expr=f"sum by ({PER_CLUSTER}, namespace, profile) (gpu_cluster_repartition_pods) > 0",
            hold="1h",
            severity=Severity.INFO,
            summary="Pods of {{ $labels.namespace }} would fit if free slices were cut anew.",
            description="{{ $value }} pods wait for {{ $labels.profile }} while parts of GPUs are"
            " free in other sizes. Change the MIG layout of a node that is idle.",
            sources=_ADAPTER,
        ),
        Alert(
            name="GPUDevicesStranded",
            expr=f"sum by ({PER_CLUSTER}, product, resource) (gpu_cluster_stranded_devices) > 0",
            hold="1h",
            severity=Severity.INFO,
            summary="{{ $value }} of {{ $labels.resource }} are free and of no use to waiting pods.",
            description="On {{ $labels.product }} the free devices are too few on each node, or of a"
            " kind that no waiting pod asks for.",
            sources=_ADAPTER,
        ),
        Alert(
            name="GPUDevicesOvercommitted",
            expr=f"max by ({PER_NODE}, resource) (gpu_cluster_overcommitted_devices) > 0",
            hold="10m",
            severity=Severity.WARNING,
            summary="Pods of node {{ $labels.node }} hold more {{ $labels.resource }} than it has.",
            description="{{ $value }} devices are gone under their pods: a GPU was lost, or the MIG"
            " layout or the number of replicas was changed while they ran.",
            sources=_ADAPTER,
        ),
        Alert(
            name="GPUQuotaNearlyUsed",
            expr=f"""
            max by ({PER_CLUSTER}, namespace, quota, resource) (gpu_cluster_quota_used_ratio)
            >= {QUOTA_RATIO}
            """,
            hold="15m",
            severity=Severity.INFO,
            summary="Quota {{ $labels.quota }} of {{ $labels.namespace }} is nearly used.",
            description="{{ $value | humanizePercentage }} of {{ $labels.resource }}. Pods beyond it"
            " are refused when they are created; an HPA then stays below what it wants.",
            sources=_ADAPTER,
        ),
        Alert(
            name="GPUNamespaceWithoutQuota",
            # Only where quotas are the custom: one namespace without them can take what is left.
            expr=f"""
            sum by ({PER_CLUSTER}, namespace) (gpu_pod_requests) > 0
            unless on ({PER_CLUSTER}, namespace) gpu_cluster_quota_hard_devices
            and on ({PER_CLUSTER}) gpu_cluster_quota_hard_devices
            """,
            hold="1h",
            severity=Severity.INFO,
            summary="Namespace {{ $labels.namespace }} uses GPUs without a quota.",
            description="Its pods request {{ $value }} devices. Other namespaces have a"
            " ResourceQuota; this one can take all that is free.",
            sources=_ADAPTER,
        ),
        Alert(
            name="GPUAllocatedIdle",
            # Only of what was there and held already: over less, a rate would come out too low.
            expr=f"""
            max by ({PER_DEVICE}, model) (rate(gpu_busy_seconds_total[90m])) < {IDLE_RATIO}
            and max by ({PER_DEVICE}, model) (gpu_tenants_allocated offset 90m) > 0
            and min by ({PER_DEVICE}, model) (min_over_time(gpu_tenants_allocated[90m])) > 0
            """,
            hold="30m",
            severity=Severity.INFO,
            summary="GPU {{ $labels.gpu }} of {{ $labels.node }} is held and has not worked for two"
            " hours.",
            description="Somebody has a {{ $labels.model }} {{ $labels.profile }} without using it."
            " gpu_tenant_info says who; scale it down, or share the GPU.",
            sources=frozenset({Source.EXPORTER}),
        ),
    ),
)
