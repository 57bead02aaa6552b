"""Waste and cost: what GPUs cost, who holds them, what of that nobody uses."""

from typing import Final

from alerts.thresholds import IDLE_RATIO
from dashboards import units
from dashboards.model import Dashboard, Form, Link, Panel, Query, Row
from dashboards.variables import CLUSTER, MODEL, NODE, OF_CLUSTER, OF_GPU

_COST: Final = "gpu_cost_dollars_per_hour"

DASHBOARD: Final = Dashboard(
    name="cost",
    title="Slicewatch / Waste and cost",
    intent="What GPUs cost per hour, who holds them, and what of that is wasted or free.",
    needs=("exporter", "recording rules of alerts/rules/cost.yaml"),
    variables=(CLUSTER, NODE, MODEL),
    rows=(
        Row(
            title="Now, in dollars per hour",
            panels=(
                Panel(
                    title="All GPUs",
                    reading="By the exporters' setting `prices`. Models without a price are not in"
                    " it.",
                    queries=(Query(expr=f"sum(node:{_COST}:total{{{OF_GPU}}})"),),
                    unit=units.DOLLARS_PER_HOUR, form=Form.NUMBER, width=6, height=4,
                ),
                Panel(
                    title="Held",
                    reading="What pods hold; of shared GPUs the replicas that they hold.",
                    queries=(Query(expr=f"sum(node:{_COST}:held{{{OF_GPU}}})"),),
                    unit=units.DOLLARS_PER_HOUR, form=Form.NUMBER, width=6, height=4,
                ),
                Panel(
                    title="Wasted",
                    reading="Held while no kernel ran. Sharing, smaller slices or scaling to zero"
                    " bring it down.",
                    queries=(Query(expr=f"sum(node:{_COST}:wasted{{{OF_GPU}}})"),),
                    unit=units.DOLLARS_PER_HOUR, form=Form.NUMBER, width=6, height=4,
                ),
                Panel(
                    title="Free",
                    reading="Held by nobody: free GPUs, replicas and slices.",
                    queries=(Query(expr=f"sum(node:{_COST}:free{{{OF_GPU}}})"),),
                    unit=units.DOLLARS_PER_HOUR, form=Form.NUMBER, width=6, height=4,
                ),
            ),
        ),
        Row(
            title="Where it goes",
            panels=(
                Panel(
                    title="Used, wasted, free",
                    reading="Where utilization is known, they add up to the price of all GPUs that"
                    " have one.",
                    queries=(
                        Query(expr=f"sum(node:{_COST}:used{{{OF_GPU}}})", legend="used"),
                        Query(expr=f"sum(node:{_COST}:wasted{{{OF_GPU}}})", legend="wasted"),
                        Query(expr=f"sum(node:{_COST}:free{{{OF_GPU}}})", legend="free"),
                    ),
                    unit=units.DOLLARS_PER_HOUR, form=Form.AREAS, least=0,
                ),
                Panel(
                    title="Waste by namespace",
                    reading="Who holds GPUs without using them. Ask there first.",
                    queries=(
                        Query(
                            expr=f"topk(10, sum by (namespace)"
                            f" (namespace:{_COST}:wasted{{{OF_CLUSTER}}}))",
                            legend="{{namespace}}",
                        ),
                    ),
                    unit=units.DOLLARS_PER_HOUR, least=0,
                ),
                Panel(
                    title="Namespaces",
                    reading="In dollars per hour. Over the chosen time: set the range to a month and"
                    " read the mean.",
                    queries=(
                        Query(
                            expr="sum by (namespace) (avg_over_time"
                            f"(namespace:{_COST}:held{{{OF_CLUSTER}}}[$__range]))",
                            legend="Held",
                        ),
                        Query(
                            expr="sum by (namespace) (avg_over_time"
                            f"(namespace:{_COST}:wasted{{{OF_CLUSTER}}}[$__range]))",
                            legend="Wasted",
                        ),
                    ),
                    unit=units.DOLLARS_PER_HOUR, form=Form.TABLE,
                ),
                Panel(
                    title="Waste by model",
                    reading="Expensive models that idle are the first to share.",
                    queries=(
                        Query(
                            expr=f"sum by (model) (node:{_COST}:wasted{{{OF_GPU}}})",
                            legend="{{model}}",
                        ),
                    ),
                    unit=units.DOLLARS_PER_HOUR, form=Form.BARS, least=0,
                ),
                Panel(
                    title="Held without work for long",
                    reading="Devices that somebody holds and that were busy for less than 1 % of an"
                    " hour. Click a uuid to see when it last worked.",
                    queries=(
                        Query(
                            expr="max by (node, gpu, uuid, profile, model)"
                            f" (avg_over_time(gpu_utilization{{{OF_GPU}}}[1h])) / 100 < {IDLE_RATIO}"
                            " and max by (node, gpu, uuid, profile, model)"
                            f" (gpu_tenants_allocated{{{OF_GPU}}}) > 0",
                            legend="Busy share",
                        ),
                    ),
                    unit=units.RATIO, form=Form.TABLE, width=24,
                    empty="None: what is held has worked",
                    links=(
                        Link(label="node", dashboard="node", variable="node"),
                        Link(label="uuid", dashboard="gpu", variable="uuid"),
                    ),
                ),
            ),
        ),
    ),
)  # fmt: skip
