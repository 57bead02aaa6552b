"""What GPUs cost, who holds them, and what of that is wasted: held, and no kernel ran.

All are dollars per hour, as of now; over a month, ``avg_over_time`` of them times its hours. A
device that is shared is split by its replicas: what nobody holds of it is free, not somebody's.
"""

from typing import Final

from alerts.model import Group, Recording, Source
from alerts.series import PER_DEVICE

_EXPORTER: Final = frozenset({Source.EXPORTER})
_HELD: Final = "pod_device:gpu_cost_dollars_per_hour:held"
_WASTED: Final = "pod_device:gpu_cost_dollars_per_hour:wasted"
_PODS: Final = f"{PER_DEVICE}, model, namespace, pod"
_NODE: Final = "cluster, node, model"


def _summed(level: str, labels: str) -> tuple[Recording, ...]:
    return tuple(
        Recording(
            name=f"{level}:gpu_cost_dollars_per_hour:{what}",
            expr=f"sum by ({labels}) (pod_device:gpu_cost_dollars_per_hour:{what})",
            help=f"{meaning} by {labels.replace('cluster, ', '')}.",
            sources=_EXPORTER,
        )
        for what, meaning in (
            ("held", "Price of what pods hold,"),
            ("wasted", "Price of what pods hold while no kernel runs,"),
        )
    )


GROUP: Final = Group(
    name="cost",
    title="Cost",
    intent="What GPUs cost, who holds them, and what of that is wasted.",
    interval="1m",
    rules=(
        Recording(
            name="device:gpu_replicas:held",
            # A pod of several containers may hold one replica with each of them.
            expr=f"""
            count by ({PER_DEVICE}) (
              count by ({PER_DEVICE}, namespace, pod, replica) (gpu_tenant_info{{source="kubelet"}})
            )
            """,
            help="How many replicas of the device pods hold; 1 for a pod with a whole one.",
            sources=_EXPORTER,
        ),
        Recording(
            name="device:gpu_replicas:divisor",
            # Pods may share a device without the device plugin's knowledge, by one resource claim.
            expr=f"""
            (max by ({PER_DEVICE}) (gpu_sharing_replicas) > device:gpu_replicas:held)
            or device:gpu_replicas:held
            """,
            help="Into how many parts the price of the device is split.",
            sources=_EXPORTER,
        ),
        Recording(
            name=_HELD,
            expr=f"""
            count by ({_PODS}) (
              count by ({_PODS}, replica) (gpu_tenant_info{{source="kubelet"}})
            )
            / on ({PER_DEVICE}) group_left () device:gpu_replicas:divisor
            * on ({PER_DEVICE}) group_left () max by ({PER_DEVICE}) (gpu_price_dollars_per_hour)
            """,
            help="Price of what a pod holds of a device.",
            sources=_EXPORTER,
        ),
        Recording(
            name=_WASTED,
            expr=f"""
            {_HELD}
            * on ({PER_DEVICE}) group_left ()
              (1 - max by ({PER_DEVICE}) (avg_over_time(gpu_utilization[5m])) / 100)
            """,
            help="Price of what a pod holds of a device, times the part of the last five minutes in"
            " which no kernel ran there; absent where utilization is.",
            sources=_EXPORTER,
        ),
        *_summed("namespace", "cluster, namespace"),
        *_summed("node", _NODE),
        Recording(
            name="node:gpu_cost_dollars_per_hour:total",
            expr=f'sum by ({_NODE}) (gpu_price_dollars_per_hour{{gpu_instance=""}})',
            help="Price of all GPUs of the node that have one.",
            sources=_EXPORTER,
        ),
        Recording(
            name="node:gpu_cost_dollars_per_hour:free",
            # Nothing held is no series; where nobody says who holds what, what is free is unknown.
            expr=f"""
            node:gpu_cost_dollars_per_hour:total
            - on ({_NODE}) (
              node:gpu_cost_dollars_per_hour:held
              or on ({_NODE}) 0 * sum by ({_NODE}) (gpu_tenants_allocated)
            )
            """,
            help="Price of what nobody holds on the node: free devices and replicas, and parts of"
            " GPUs that no MIG device has.",
            sources=_EXPORTER,
        ),
    ),
)
