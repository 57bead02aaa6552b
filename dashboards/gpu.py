"""GPU and MIG: one GPU in depth, and its slices."""

from typing import Final

from dashboards import units
from dashboards.model import Dashboard, Form, Limit, Panel, Query, Row
from dashboards.variables import CLUSTER, NODE, OF_NODE, UUID

# A MIG device has a uuid of its own; it is found by the node and the number of its GPU.
_GPU: Final = f'{OF_NODE},uuid="$uuid"'


def _slices(metric: str) -> str:
    """Return a metric of the GPU and of its MIG devices."""
    return f"{metric}{{{OF_NODE}}} and on (cluster, node, gpu) gpu_up{{{_GPU}}}"


_SLICE: Final = "{{profile}} {{gpu_instance}}"

DASHBOARD: Final = Dashboard(
    name="gpu",
    title="Slicewatch / GPU and MIG",
    intent="One GPU in depth: what its parts do, what holds it back, what its slices do.",
    needs=("exporter",),
    variables=(CLUSTER, NODE, UUID),
    rows=(
        Row(
            title="Work",
            panels=(
                Panel(
                    title="Utilization of the GPU or its slices",
                    reading="Time in which at least one kernel ran. A small kernel counts as a large"
                    " one: the parts below tell them apart.",
                    queries=(Query(expr=_slices("gpu_utilization"), legend=_SLICE),),
                    unit=units.of("gpu_utilization"), least=0, most=100,
                ),
                Panel(
                    title="Parts in use (GPM)",
                    reading="On Hopper and newer. SMs with a warp, of them resident warps, tensor"
                    " cores, memory bandwidth. High SMs with low occupancy: small batches.",
                    queries=tuple(
                        Query(
                            expr=_slices(f"gpu_gpm_{part}_ratio"), legend=f"{part} {_SLICE}"
                        )
                        for part in ("sm", "sm_occupancy", "tensor", "dram")
                    ),
                    unit=units.of("gpu_gpm_sm_ratio"), least=0, most=1,
                    empty="No data: GPM is there on Hopper and newer",
                ),
                Panel(
                    title="Memory",
                    reading="Used by programs, and reserved by driver and firmware.",
                    queries=(
                        Query(expr=f"gpu_memory_used_bytes{{{_GPU}}}", legend="used"),
                        Query(expr=f"gpu_memory_reserved_bytes{{{_GPU}}}", legend="reserved"),
                        Query(expr=f"gpu_memory_free_bytes{{{_GPU}}}", legend="free"),
                    ),
                    unit=units.of("gpu_memory_used_bytes"), form=Form.AREAS, least=0,
                ),
                Panel(
                    title="Memory of slices",
                    reading="Used part of each MIG device's own memory.",
                    queries=(Query(expr=_slices("gpu_memory_utilization"), legend=_SLICE),),
                    unit=units.of("gpu_memory_utilization"), least=0, most=100,
                ),
            ),
        ),
        Row(
            title="Heat, power, clocks",
            panels=(
                Panel(
                    title="Temperatures",
                    reading="Of die and memory. What is too hot differs from board to board.",
                    queries=(
                        Query(expr=f"gpu_temperature_celsius{{{_GPU}}}", legend="die"),
                        Query(expr=f"gpu_memory_temperature_celsius{{{_GPU}}}", legend="memory"),
                    ),
                    unit=units.of("gpu_temperature_celsius"), width=8,
                ),
                Panel(
                    title="Power and its limit",
                    reading="At its limit a board lowers its clocks: normal under full load.",
                    queries=(
                        Query(expr=f"gpu_power_usage_watts{{{_GPU}}}", legend="drawn"),
                        Query(
                            expr=f'gpu_power_limit_watts{{{_GPU},limit="enforced"}}',
                            legend="limit",
                        ),
                    ),
                    unit=units.of("gpu_power_usage_watts"), width=8, least=0,
                ),
                Panel(
                    title="Clocks",
                    reading="Of SMs and memory. They fall while the GPU is idle.",
                    queries=(
                        Query(expr=f"gpu_sm_clock_mhz{{{_GPU}}}", legend="SM"),
                        Query(expr=f"gpu_mem_clock_mhz{{{_GPU}}}", legend="memory"),
                    ),
                    unit=units.of("gpu_sm_clock_mhz"), width=8, least=0,
                ),
                Panel(
                    title="What holds the clocks down",
                    reading="1 while the reason applies. Idle and power cap are normal; thermal"
                    " slowdown and power brake are not.",
                    queries=(
                        Query(
                            expr=f"gpu_clock_event_active{{{_GPU}}}", legend="{{reason}}"
                        ),
                    ),
                    unit=units.STATE, form=Form.STATES, width=24, height=9,
                    limits=(Limit(value=1, colour="orange"),),
                ),
            ),
        ),
        Row(
            title="Errors",
            panels=(
                Panel(
                    title="Memory errors since the driver was loaded",
                    reading="Corrected ones alone call nobody. An uncorrected one has ended a"
                    " program.",
                    queries=(
                        Query(
                            expr=f"gpu_ecc_errors_volatile_total{{{_GPU}}}", legend="{{kind}}"
                        ),
                    ),
                    unit=units.COUNT, width=8, least=0,
                ),
                Panel(
                    title="Xids",
                    reading="By number, counted since the exporter has listened. What each means is"
                    " in the reference of health checks.",
                    queries=(
                        Query(
                            expr=f"gpu_xid_events_total{{{_GPU}}}", legend="all"
                        ),
                        Query(expr=f"gpu_xid_errors_total{{{_GPU}}}", legend="Xid {{xid}}"),
                    ),
                    unit=units.COUNT, width=8, least=0,
                ),
                Panel(
                    title="Repairs of memory",
                    reading="Remapped rows over the board's life, and whether one waits for a reset.",
                    queries=(
                        Query(
                            expr=f"gpu_remapped_rows_total{{{_GPU}}}", legend="remapped {{cause}}"
                        ),
                        Query(expr=f"gpu_row_remap_pending{{{_GPU}}}", legend="pending"),
                    ),
                    unit=units.COUNT, width=8, least=0,
                ),
            ),
        ),
        Row(
            title="Links",
            panels=(
                Panel(
                    title="NVLink traffic",
                    reading="Over all links of the GPU. MIG has none.",
                    queries=tuple(
                        Query(
                            expr=f"rate(gpu_nvlink_{way}_bytes_total{{{_GPU}}}[$__rate_interval])",
                            legend=way,
                        )
                        for way in ("transmitted", "received")
                    ),
                    unit=units.rate_of("gpu_nvlink_transmitted_bytes_total"), least=0,
                ),
                Panel(
                    title="PCIe",
                    reading="Generation and lanes now; an idle link sleeps at a lower generation.",
                    queries=(
                        Query(
                            expr=f'gpu_pcie_link_generation{{{_GPU},state="current"}}',
                            legend="generation",
                        ),
                        Query(
                            expr=f'gpu_pcie_link_width{{{_GPU},state="current"}}', legend="lanes"
                        ),
                        Query(
                            expr=f"increase(gpu_pcie_replays_total{{{_GPU}}}[1h])",
                            legend="replays in the last hour",
                        ),
                    ),
                    unit=units.COUNT, least=0,
                ),
            ),
        ),
    ),
)  # fmt: skip
