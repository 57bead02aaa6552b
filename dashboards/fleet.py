"""Fleet: how much there is, how busy it is, and where something is wrong."""

from typing import Final

from alerts.thresholds import CONTENDED_RATIO
from dashboards import units
from dashboards.model import Dashboard, Form, Limit, Link, Panel, Query, Row
from dashboards.variables import CLUSTER, MODEL, NODE, OF_CLUSTER, OF_GPU, OF_NODE

DASHBOARD: Final = Dashboard(
    name="fleet",
    title="Slicewatch / Fleet",
    intent="How many GPUs there are, how busy they are, and which nodes need somebody.",
    needs=("exporter", "adapter", "health"),
    variables=(CLUSTER, NODE, MODEL),
    rows=(
        Row(
            title="Now",
            panels=(
                Panel(
                    title="GPUs",
                    reading="Boards that exporters know, lost ones included.",
                    queries=(Query(expr=f"count(gpu_up{{{OF_GPU}}})"),),
                    unit=units.COUNT, form=Form.NUMBER, width=4, height=4,
                ),
                Panel(
                    title="Not answering",
                    reading="GPUs that their driver cannot reach. Anything but 0 is an incident.",
                    queries=(Query(expr=f"count(gpu_up{{{OF_GPU}}}) - sum(gpu_up{{{OF_GPU}}})"),),
                    unit=units.COUNT, form=Form.NUMBER, width=4, height=4,
                    limits=(Limit(value=1, colour="red"),),
                ),
                Panel(
                    title="Mean utilization",
                    reading="Over devices whose utilization is known, each counted once: of a GPU"
                    " in MIG mode its slices. Clusters have 30 to 40 %; above 70 % is good.",
                    queries=(Query(expr=f"avg(gpu_utilization{{{OF_GPU}}})"),),
                    unit=units.of("gpu_utilization"), form=Form.NUMBER, width=4, height=4,
                    least=0, most=100,
                ),
                Panel(
                    title="Memory allocated",
                    reading="Of the memory of all boards. Full memory beside idle compute asks for"
                    " smaller slices, or for sharing.",
                    queries=(
                        Query(
                            expr=f'sum(gpu_memory_used_bytes{{{OF_GPU},gpu_instance=""}})'
                            f' / sum(gpu_memory_total_bytes{{{OF_GPU},gpu_instance=""}})'
                        ),
                    ),
                    unit=units.RATIO, form=Form.NUMBER, width=4, height=4, least=0, most=1,
                ),
                Panel(
                    title="Power",
                    reading="Of all boards, as they report it.",
                    queries=(Query(expr=f"sum(gpu_power_usage_watts{{{OF_GPU}}})"),),
                    unit=units.of("gpu_power_usage_watts"), form=Form.NUMBER, width=4, height=4,
                ),
                Panel(
                    title="Unhealthy nodes",
                    reading="Nodes with the condition GPUUnhealthy, by their health monitors.",
                    queries=(
                        Query(
                            expr="sum(slicewatch_health_condition"
                            f'{{{OF_NODE},condition="GPUUnhealthy"}})'
                        ),
                    ),
                    unit=units.COUNT, form=Form.NUMBER, width=4, height=4,
                    limits=(Limit(value=1, colour="red"),),
                ),
            ),
        ),
        Row(
            title="Use",
            panels=(
                Panel(
                    title="Utilization by model",
                    reading="Means over the devices of a model. Old models that idle beside new ones"
                    " that are full ask for another scheduling.",
                    queries=(
                        Query(
                            expr=f"avg by (model) (gpu_utilization{{{OF_GPU}}})",
                            legend="{{model}}",
                        ),
                    ),
                    unit=units.of("gpu_utilization"), least=0, most=100,
                ),
                Panel(
                    title="Devices by utilization",
                    reading="How many devices are idle (below 5 %), in between, and full (above"
                    " 90 %). Many at both ends means that work is badly spread.",
                    queries=(
                        Query(expr=f"count(gpu_utilization{{{OF_GPU}}} < 5)", legend="idle"),
                        Query(
                            expr=f"count(gpu_utilization{{{OF_GPU}}} >= 5"
                            f" and gpu_utilization{{{OF_GPU}}} <= 90)",
                            legend="in between",
                        ),
                        Query(expr=f"count(gpu_utilization{{{OF_GPU}}} > 90)", legend="full"),
                    ),
                    unit=units.COUNT, form=Form.AREAS,
                ),
                Panel(
                    title="Busiest nodes",
                    reading="Means over the devices of a node.",
                    queries=(
                        Query(
                            expr=f"topk(10, avg by (node) (gpu_utilization{{{OF_GPU}}}))",
                            legend="{{node}}",
                        ),
                    ),
                    unit=units.of("gpu_utilization"), form=Form.BARS, least=0, most=100,
                ),
                Panel(
                    title="Idlest nodes",
                    reading="Nodes whose GPUs work least. Whether somebody holds them is on Cost.",
                    queries=(
                        Query(
                            expr=f"bottomk(10, avg by (node) (gpu_utilization{{{OF_GPU}}}))",
                            legend="{{node}}",
                        ),
                    ),
                    unit=units.of("gpu_utilization"), form=Form.BARS, least=0, most=100,
                ),
                Panel(
                    title="Contended time",
                    reading="Share of the time in which several tenants wanted a GPU that was full,"
                    " of the worst devices. Above 15 %, lower the oversubscription factor.",
                    queries=(
                        Query(
                            expr="topk(5, sum by (node, gpu)"
                            f" (rate(gpu_contended_seconds_total{{{OF_GPU}}}[$__rate_interval]))"
                            " / sum by (node, gpu)"
                            f" (rate(gpu_sampled_seconds_total{{{OF_GPU}}}[$__rate_interval])))",
                            legend="{{node}} GPU {{gpu}}",
                        ),
                    ),
                    unit=units.RATIO, least=0, most=1,
                    limits=(Limit(value=CONTENDED_RATIO, colour="orange"),),
                ),
                Panel(
                    title="Free and requested devices",
                    reading="As the scheduler counts them, by resource.",
                    queries=(
                        Query(
                            expr="sum by (resource)"
                            f" (gpu_cluster_requested_devices{{{OF_CLUSTER}}})",
                            legend="{{resource}} requested",
                        ),
                        Query(
                            expr=f"sum by (resource) (gpu_cluster_free_devices{{{OF_CLUSTER}}})",
                            legend="{{resource}} free",
                        ),
                    ),
                    unit=units.COUNT,
                ),
            ),
        ),
        Row(
            title="Nodes",
            panels=(
                Panel(
                    title="Nodes",
                    reading="Click a node to see its GPUs.",
                    queries=(
                        Query(expr=f"count by (node) (gpu_up{{{OF_GPU}}})", legend="GPUs"),
                        Query(
                            expr=f"avg by (node) (gpu_utilization{{{OF_GPU}}})",
                            legend="Utilization",
                        ),
                        Query(
                            expr=f"max by (node) (gpu_temperature_celsius{{{OF_GPU}}})",
                            legend="Hottest GPU, Celsius",
                        ),
                        Query(
                            expr=f"sum by (node) (gpu_tenants_allocated{{{OF_GPU}}})",
                            legend="Containers",
                        ),
                    ),
                    unit=units.COUNT, form=Form.TABLE, width=24, height=10,
                    links=(Link(label="node", dashboard="node", variable="node"),),
                ),
            ),
        ),
    ),
)  # fmt: skip
