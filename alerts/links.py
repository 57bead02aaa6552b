"""Links of a GPU to other GPUs and to its host."""

from typing import Final

from alerts.model import DEVICE, Alert, Group, Severity, Source
from alerts.series import PER_GPU
from alerts.thresholds import BUSY_PERCENT, PCIE_REPLAYS_PER_HOUR

_EXPORTER: Final = frozenset({Source.EXPORTER})


def _below_most(metric: str) -> str:
    return (
        f'max by ({PER_GPU}) ({metric}{{state="current"}})'
        f' < max by ({PER_GPU}) ({metric}{{state="max"}})'
    )


GROUP: Final = Group(
    name="links",
    title="Links",
    intent="A GPU reaches its neighbours or its host with less than it could.",
    rules=(
        Alert(
            name="GPUNVLinkDown",
            # Which links a board should have up is not known to its driver: those it had are.
            expr=f"""
            max by ({PER_GPU}) (gpu_nvlink_active_links)
            < max by ({PER_GPU}) (max_over_time(gpu_nvlink_active_links[1d]))
            """,
            hold="5m",
            severity=Severity.WARNING,
            summary="NVLinks of GPU {{ $labels.gpu }} of {{ $labels.node }} are down.",
            description="Only {{ $value }} are up, fewer than within the last day. Jobs over"
            " several GPUs become slow or fail.",
            sources=_EXPORTER,
            labels=DEVICE,
        ),
        Alert(
            name="GPUFabricFault",
            expr=f"""
            max by ({PER_GPU}, kind) (gpu_fabric_fault == 1)
            or (
              max by ({PER_GPU}) (gpu_fabric_healthy == 0)
              unless on ({PER_GPU}) gpu_fabric_fault == 1
            )
            """,
            hold="10m",
            severity=Severity.WARNING,
            summary="GPU {{ $labels.gpu }} of {{ $labels.node }} cannot use the NVLink fabric in"
            " full.",
            description="{{ with $labels.kind }}The fault is {{ . }}. {{ end }}Look at the fabric"
            " manager of the node, and on several nodes at once at the NVSwitches.",
            sources=_EXPORTER,
            labels=DEVICE,
        ),
        Alert(
            name="GPUPCIeDegraded",
            expr=f"""
            ({_below_most("gpu_pcie_link_width")})
            or (
              {_below_most("gpu_pcie_link_generation")}
              and max by ({PER_GPU}) (gpu_utilization) > {BUSY_PERCENT}
            )
            """,
            hold="15m",
            severity=Severity.WARNING,
            summary="The PCIe link of GPU {{ $labels.gpu }} of {{ $labels.node }} is below its"
            " best.",
            description="It has come down to {{ $value }} (lanes, or generation while at work)."
            " Loading data and models takes longer. Have the board seated anew.",
            sources=_EXPORTER,
            labels=DEVICE,
        ),
        Alert(
            name="GPUPCIeReplays",
            expr=f"""
            sum by ({PER_GPU}) (increase(gpu_pcie_replays_total[1h])) > {PCIE_REPLAYS_PER_HOUR}
            """,
            hold="1h",
            severity=Severity.INFO,
            summary="GPU {{ $labels.gpu }} of {{ $labels.node }} repeats PCIe packets.",
            description="{{ $value | humanize }} in an hour. No data is lost, but the link is not"
            " clean: a riser, a slot or a seat.",
            sources=_EXPORTER,
            labels=DEVICE,
        ),
    ),
)
