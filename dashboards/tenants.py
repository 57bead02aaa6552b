"""Tenants and contention: who uses what, and who is in whose way."""

from typing import Final

from alerts.thresholds import CONTENDED_RATIO, MOST_REPLICAS, SHARED_MEMORY_PERCENT
from dashboards import units
from dashboards.model import Dashboard, Form, Limit, Link, Panel, Query, Row
from dashboards.variables import CLUSTER, MODEL, NAMESPACE, NODE, OF_GPU, OF_TENANT

_DEVICE: Final = "{{node}} GPU {{gpu}} {{profile}}"
# Processes of the host belong to no namespace.
_NAMED: Final = '"namespace", "outside of pods", "namespace", ""'
_BY_DEVICE: Final = "node, gpu, uuid, profile"

DASHBOARD: Final = Dashboard(
    name="tenants",
    title="Slicewatch / Tenants and contention",
    intent="Which containers use which GPU, how much of it, and how far they are in each other's"
    " way.",
    needs=("exporter",),
    variables=(CLUSTER, NODE, MODEL, NAMESPACE),
    rows=(
        Row(
            title="Tenants",
            panels=(
                Panel(
                    title="GPU time by namespace",
                    reading="GPUs kept busy: 1 is one whole GPU, all of the time. Estimated from the"
                    " driver's samples of processes; absent under MPS and MIG.",
                    queries=(
                        Query(
                            expr="label_replace(sum by (namespace)"
                            " (rate(gpu_tenant_busy_seconds_total"
                            f"{{{OF_TENANT}}}[$__rate_interval])), {_NAMED})",
                            legend="{{namespace}}",
                        ),
                    ),
                    unit=units.COUNT, form=Form.AREAS, least=0,
                ),
                Panel(
                    title="GPU memory by namespace",
                    reading="Device memory that processes of the namespace's containers hold.",
                    queries=(
                        Query(
                            expr="label_replace(sum by (namespace)"
                            f" (gpu_tenant_memory_used_bytes{{{OF_TENANT}}}), {_NAMED})",
                            legend="{{namespace}}",
                        ),
                    ),
                    unit=units.of("gpu_tenant_memory_used_bytes"), form=Form.AREAS, least=0,
                ),
                Panel(
                    title="Containers",
                    reading="Busy share of the device, and share of the time in which the container"
                    " may have found it taken. Click a node for its GPUs.",
                    queries=(
                        Query(
                            expr="sum by (node, gpu, profile, namespace, pod, container)"
                            f" (gpu_tenant_busy_ratio{{{OF_TENANT}}})",
                            legend="Busy share",
                        ),
                        Query(
                            expr="max by (node, gpu, profile, namespace, pod, container)"
                            f" (gpu_tenant_contention_ratio{{{OF_TENANT}}})",
                            legend="Contention",
                        ),
                        Query(
                            expr="sum by (node, gpu, profile, namespace, pod, container)"
                            f" (gpu_tenant_memory_used_bytes{{{OF_TENANT}}})",
                            legend="Memory, bytes",
                        ),
                    ),
                    unit=units.COUNT, form=Form.TABLE, width=24, height=9,
                    links=(Link(label="node", dashboard="node", variable="node"),),
                ),
            ),
        ),
        Row(
            title="Contention",
            panels=(
                Panel(
                    title="Contended time",
                    reading="Share of the time in which several tenants were active on a device that"
                    " was full. This is what the alert goes by: above 15 %, lower the"
                    " oversubscription factor, move a tenant, or use MIG.",
                    queries=(
                        Query(
                            expr=f"sum by ({_BY_DEVICE})"
                            f" (rate(gpu_contended_seconds_total{{{OF_GPU}}}[$__rate_interval]))"
                            f" / sum by ({_BY_DEVICE})"
                            f" (rate(gpu_sampled_seconds_total{{{OF_GPU}}}[$__rate_interval]))",
                            legend=_DEVICE,
                        ),
                    ),
                    unit=units.RATIO, least=0, most=1,
                    limits=(Limit(value=CONTENDED_RATIO, colour="orange"),),
                ),
                Panel(
                    title="Contention ratio",
                    reading="Ranks devices: the mean share of the window in which others had the"
                    " device while one worked. It reaches 0.15 with two quiet tenants: it pages"
                    " nobody.",
                    queries=(
                        Query(
                            expr=f"max by ({_BY_DEVICE}) (gpu_contention_ratio{{{OF_GPU}}})",
                            legend=_DEVICE,
                        ),
                    ),
                    unit=units.of("gpu_contention_ratio"), least=0, most=1,
                ),
                Panel(
                    title="Most disturbed containers",
                    reading="Whose work may be waited for by whom: the highest shares now.",
                    queries=(
                        Query(
                            expr="topk(10, max by (namespace, pod)"
                            f" (gpu_tenant_contention_ratio{{{OF_TENANT}}}))",
                            legend="{{namespace}}/{{pod}}",
                        ),
                    ),
                    unit=units.of("gpu_tenant_contention_ratio"), form=Form.BARS, least=0, most=1,
                ),
                Panel(
                    title="Pressure of tenants that run at once",
                    reading="Under MPS, or in one MIG device: how busy SMs or memory are while"
                    " several use them at the same time. Near 1 they slow each other down.",
                    queries=(
                        Query(
                            expr=f"max by ({_BY_DEVICE}) (gpu_pressure_ratio{{{OF_GPU}}})",
                            legend=_DEVICE,
                        ),
                    ),
                    unit=units.of("gpu_pressure_ratio"), least=0, most=1,
                ),
            ),
        ),
        Row(
            title="Sharing",
            panels=(
                Panel(
                    title="Oversubscription",
                    reading="As how many devices each is offered, and how many containers are active"
                    " there. Start at 4; beyond 8 a turn comes too seldom.",
                    queries=(
                        Query(
                            expr=f"max by ({_BY_DEVICE}) (gpu_sharing_replicas{{{OF_GPU}}})",
                            legend="offered: " + _DEVICE,
                        ),
                        Query(
                            expr=f"max by ({_BY_DEVICE}) (gpu_tenants_active{{{OF_GPU}}}) > 1",
                            legend="active: " + _DEVICE,
                        ),
                    ),
                    unit=units.COUNT, width=8, least=0,
                    limits=(Limit(value=MOST_REPLICAS + 1, colour="orange"),),
                ),
                Panel(
                    title="Memory of shared devices",
                    reading="Of devices with several active tenants. Above 90 % the next allocation"
                    " may fail, and it is not known whose.",
                    queries=(
                        Query(
                            expr=f"max by ({_BY_DEVICE}) (gpu_memory_utilization{{{OF_GPU}}})"
                            f" and max by ({_BY_DEVICE}) (gpu_tenants_active{{{OF_GPU}}}) > 1",
                            legend=_DEVICE,
                        ),
                    ),
                    unit=units.of("gpu_memory_utilization"), width=8, least=0, most=100,
                    limits=(Limit(value=SHARED_MEMORY_PERCENT, colour="orange"),),
                ),
                Panel(
                    title="vGPUs waiting",
                    reading="On vGPU hosts: share of the time that vGPUs want to run in which they"
                    " are kept waiting.",
                    queries=(
                        Query(
                            expr=f"max by (node, gpu) (gpu_vgpu_wait_ratio{{{OF_GPU}}})",
                            legend="{{node}} GPU {{gpu}}",
                        ),
                    ),
                    unit=units.of("gpu_vgpu_wait_ratio"), width=8, least=0, most=1,
                    limits=(Limit(value=CONTENDED_RATIO, colour="orange"),),
                ),
            ),
        ),
    ),
)  # fmt: skip
