"""Node: the GPUs of one node side by side."""

from typing import Final

from dashboards import units
from dashboards.model import Dashboard, Form, Limit, Link, Panel, Query, Row
from dashboards.variables import CLUSTER, MODEL, OF_GPU, OF_NODE, ONE_NODE

_GPU: Final = "GPU {{gpu}}"
_DEVICE: Final = "GPU {{gpu}} {{profile}} {{gpu_instance}}"

DASHBOARD: Final = Dashboard(
    name="node",
    title="Slicewatch / Node",
    intent="What the GPUs of a node do, who has them, and whether one of them falls behind.",
    needs=("exporter", "health"),
    variables=(CLUSTER, ONE_NODE, MODEL),
    rows=(
        Row(
            title="GPUs",
            panels=(
                Panel(
                    title="Utilization",
                    reading="Of each GPU, and of each slice of a partitioned one, which has none as"
                    " a whole. Gaps are times in which it was not known.",
                    queries=(
                        Query(
                            expr="max by (node, gpu, gpu_instance, profile)"
                            f" (gpu_utilization{{{OF_GPU}}})",
                            legend=_DEVICE,
                        ),
                    ),
                    unit=units.of("gpu_utilization"), least=0, most=100,
                ),
                Panel(
                    title="Memory used",
                    reading="Allocated, not touched: many programs take it all at their start.",
                    queries=(
                        Query(
                            expr=f'gpu_memory_used_bytes{{{OF_GPU},gpu_instance=""}}',
                            legend=_GPU,
                        ),
                    ),
                    unit=units.of("gpu_memory_used_bytes"), least=0,
                ),
                Panel(
                    title="Power",
                    reading="Of the board. One that draws less than its neighbours under the same"
                    " job is slowed down: see the reasons below.",
                    queries=(Query(expr=f"gpu_power_usage_watts{{{OF_GPU}}}", legend=_GPU),),
                    unit=units.of("gpu_power_usage_watts"), least=0,
                ),
                Panel(
                    title="Degrees until it slows down",
                    reading="Of the die. At 0 the board slows itself down; boards that do not state"
                    " it are missing.",
                    queries=(
                        Query(expr=f"gpu_temperature_margin_celsius{{{OF_GPU}}}", legend=_GPU),
                    ),
                    unit=units.of("gpu_temperature_margin_celsius"),
                ),
                Panel(
                    title="SM clock",
                    reading="Falls while idle. Under load it should be near that of the neighbours.",
                    queries=(Query(expr=f"gpu_sm_clock_mhz{{{OF_GPU}}}", legend=_GPU),),
                    unit=units.of("gpu_sm_clock_mhz"), least=0,
                ),
                Panel(
                    title="Slowed down",
                    reading="Share of the time in which heat or the power supply held clocks down."
                    " A power cap is normal under load and is not here.",
                    queries=(
                        Query(
                            expr="avg by (gpu, reason) (avg_over_time(gpu_clock_event_active"
                            f'{{{OF_GPU},reason=~".*thermal.*|hw_power_brake"}}'
                            "[$__rate_interval]))",
                            legend="GPU {{gpu}} {{reason}}",
                        ),
                    ),
                    unit=units.RATIO, least=0, most=1,
                ),
            ),
        ),
        Row(
            title="Who is there",
            panels=(
                Panel(
                    title="Containers",
                    reading="What the kubelet has given them, or where their processes were seen"
                    " without that. A row without a pod is what runs outside of pods. Click a uuid"
                    " for its GPU.",
                    queries=(
                        Query(
                            expr="sum by (gpu, uuid, profile, namespace, pod, container)"
                            f" (gpu_tenant_info{{{OF_GPU}}})",
                            legend="Replicas",
                        ),
                        Query(
                            expr="sum by (gpu, uuid, profile, namespace, pod, container)"
                            f" (gpu_tenant_busy_ratio{{{OF_GPU}}})",
                            legend="Busy share",
                        ),
                        Query(
                            expr="sum by (gpu, uuid, profile, namespace, pod, container)"
                            f" (gpu_tenant_memory_used_bytes{{{OF_GPU}}})",
                            legend="Memory, bytes",
                        ),
                    ),
                    unit=units.COUNT, form=Form.TABLE, width=24, height=9,
                    links=(Link(label="uuid", dashboard="gpu", variable="uuid"),),
                ),
            ),
        ),
        Row(
            title="Well-being",
            panels=(
                Panel(
                    title="Conditions",
                    reading="1 while the health monitor says that there is the problem.",
                    queries=(
                        Query(
                            expr=f"max by (condition) (slicewatch_health_condition{{{OF_NODE}}})",
                            legend="{{condition}}",
                        ),
                    ),
                    unit=units.STATE, form=Form.STATES, height=6,
                    limits=(Limit(value=1, colour="red"),),
                ),
                Panel(
                    title="Age of readings",
                    reading="Seconds since each GPU was last read; one is normal. What grows is a"
                    " call that hangs.",
                    queries=(
                        Query(
                            expr=f"max by (gpu) (gpu_reading_age_seconds{{{OF_GPU}}})", legend=_GPU
                        ),
                    ),
                    unit=units.of("gpu_reading_age_seconds"), height=6, least=0,
                ),
            ),
        ),
    ),
)  # fmt: skip
