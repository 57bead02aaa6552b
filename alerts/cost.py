"""What GPUs cost, who holds them, and what of that is used or wasted: held, and no kernel ran.

All are dollars per hour, as of now; over a month, ``avg_over_time`` of them times its hours. A
device that is shared is split by its replicas: what nobody holds of it is free, not somebody's.
Whether a device works is not always known: what is neither used nor wasted is that.
"""

from typing import Final

from alerts.model import Group, Recording, Source
from alerts.series import PER_DEVICE

_EXPORTER: Final = frozenset({Source.EXPORTER})
_COST: Final = "gpu_cost_dollars_per_hour"
_HELD: Final = f"pod_device:{_COST}:held"
_USED: Final = f"pod_device:{_COST}:used"
# Prometheus leaves out a label that there is not: workloads are known where pod_workloads is on.
_PODS: Final = f"{PER_DEVICE}, model, namespace, workload_kind, workload, pod"
_NODE: Final = "cluster, node, model"
_GPU: Final = "cluster, node, gpu"
# One exporter that two jobs scrape is one node.
_GPU_PRICES: Final = (
    f'max by ({PER_DEVICE}, model) (gpu_price_dollars_per_hour{{gpu_instance=""}})'
)
_PART_PRICES: Final = (
    f'max by ({PER_DEVICE}, model) (gpu_price_dollars_per_hour{{gpu_instance!=""}})'
)
_MEANINGS: Final = {
    "held": "Price of what pods hold,",
    "used": "Price of what pods hold while a kernel runs,",
    "wasted": "Price of what pods hold while no kernel runs,",
}


def _recording(name: str, expr: str, text: str) -> Recording:
    return Recording(name=name, expr=expr, help=text, sources=_EXPORTER)


def _summed(level: str, labels: str, matcher: str = "") -> tuple[Recording, ...]:
    return tuple(
        _recording(
            f"{level}:{_COST}:{what}",
            f"sum by ({labels}) (pod_device:{_COST}:{what}{matcher})",
            f"{meaning} by {labels.replace('cluster, ', '')}.",
        )
        for what, meaning in _MEANINGS.items()
    )


GROUP: Final = Group(
    name="cost",
    title="Cost",
    intent="What GPUs cost, who holds them, and what of that is used or wasted.",
    interval="1m",
    rules=(
        _recording(
            "device:gpu_replicas:held",
            # A pod of several containers may hold one replica with each of them.
            f"""
            count by ({PER_DEVICE}) (
              count by ({PER_DEVICE}, namespace, pod, replica) (gpu_tenant_info{{source="kubelet"}})
            )
            """,
            "How many replicas of the device pods hold; 1 for a pod with a whole one.",
        ),
        _recording(
            "device:gpu_replicas:divisor",
            # Pods may share a device without the device plugin's knowledge, by one resource claim.
            f"""
            (max by ({PER_DEVICE}) (gpu_sharing_replicas) > device:gpu_replicas:held)
            or device:gpu_replicas:held
            """,
            "Into how many parts the price of the device is split.",
        ),
        _recording(
            _HELD,
            f"""
            count by ({_PODS}) (
              count by ({_PODS}, replica) (gpu_tenant_info{{source="kubelet"}})
            )
            / on ({PER_DEVICE}) group_left () device:gpu_replicas:divisor
            * on ({PER_DEVICE}) group_left () max by ({PER_DEVICE}) (gpu_price_dollars_per_hour)
            """,
            "Price of what a pod holds of a device.",
        ),
        _recording(
            _USED,
            # The mean of what is known: time that no sample covers is neither used nor wasted.
            f"""
            {_HELD}
            * on ({PER_DEVICE}) group_left ()
              (max by ({PER_DEVICE}) (avg_over_time(gpu_utilization[5m])) / 100)
            """,
            "Price of what a pod holds of a device, times the part of the last five minutes in"
            " which a kernel ran there; absent where utilization is.",
        ),
        _recording(
            f"pod_device:{_COST}:wasted",
            f"{_HELD} - {_USED}",
            "The same, of the part in which no kernel ran.",
        ),
        *_summed("namespace", "cluster, namespace"),
        *_summed(
            "workload", "cluster, namespace, workload_kind, workload", matcher='{workload!=""}'
        ),
        *_summed("node", _NODE),
        _recording(
            f"node:{_COST}:total",
            f"sum by ({_NODE}) ({_GPU_PRICES})",
            "Price of all GPUs of the node that have one.",
        ),
        _recording(
            f"node:{_COST}:free",
            # Nothing held is no series; where nobody says who holds what, what is free is unknown,
            # and where something is held whose price is not known as well.
            f"""
            node:{_COST}:total
            - on ({_NODE}) (
              node:{_COST}:held
              or on ({_NODE}) 0 * sum by ({_NODE}) (gpu_tenants_allocated)
            )
            unless on ({_NODE}) (
              gpu_tenant_info{{source="kubelet"}}
              unless on ({PER_DEVICE}) gpu_price_dollars_per_hour
            )
            """,
            "Price of what nobody holds on the node: free devices and replicas, and parts of"
            " GPUs that no MIG device has.",
        ),
        _recording(
            f"node:{_COST}:unpartitioned",
            # A GPU that does not answer says nothing of its mode, and its parts are still there.
            f"""
            sum by ({_NODE}) (
              {_GPU_PRICES}
              and on ({_GPU}) (
                gpu_mig_mode{{state="current"}} == 1
                or gpu_price_dollars_per_hour{{gpu_instance!=""}}
              )
            )
            - on ({_NODE}) (
              sum by ({_NODE}) ({_PART_PRICES})
              or on ({_NODE}) 0 * node:{_COST}:total
            )
            unless on ({_NODE}) (
              gpu_mig_info unless on ({PER_DEVICE}) gpu_price_dollars_per_hour
            )
            """,
            "What of the free is parts of GPUs that no MIG device has: no pod can hold it before"
            " the GPU is partitioned anew. Of nodes with GPUs in MIG mode.",
        ),
    ),
)
