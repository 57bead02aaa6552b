"""Heat and power that slow a GPU down.

A power cap is no fault: a board under load runs at its limit. Nor is a temperature as such, since
what is normal differs from board to board: each is held against its own threshold.
"""

from typing import Final

from alerts.model import DEVICE, Alert, Group, Severity, Source
from alerts.series import PER_GPU
from alerts.thresholds import CLOSE_CELSIUS, SLOWED_RATIO

_EXPORTER: Final = frozenset({Source.EXPORTER})


def _slowed(reasons: str) -> str:
    return (
        f"max by ({PER_GPU}, reason)"
        f' (avg_over_time(gpu_clock_event_active{{reason=~"{reasons}"}}[10m])) > {SLOWED_RATIO}'
    )


GROUP: Final = Group(
    name="heat-and-power",
    title="Heat and power",
    intent="A GPU runs slower than it could because of heat or of its power supply.",
    rules=(
        Alert(
            name="GPUThermalSlowdown",
            expr=_slowed("hw_thermal_slowdown|sw_thermal_slowdown"),
            hold="10m",
            severity=Severity.WARNING,
            summary="GPU {{ $labels.gpu }} of {{ $labels.node }} is slowed down by heat.",
            description="{{ $labels.reason }} held its clocks down for"
            " {{ $value | humanizePercentage }} of the last ten minutes. Look at airflow and fans.",
            sources=_EXPORTER,
            labels=DEVICE,
        ),
        Alert(
            name="GPUPowerBrake",
            expr=_slowed("hw_power_brake"),
            hold="5m",
            severity=Severity.WARNING,
            summary="GPU {{ $labels.gpu }} of {{ $labels.node }} is braked by its power supply.",
            description="The server asked the board to use less, for"
            " {{ $value | humanizePercentage }} of the last ten minutes: a supply has failed or the"
            " rack is over its limit.",
            sources=_EXPORTER,
            labels=DEVICE,
        ),
        Alert(
            name="GPUHot",
            expr=f"""
            (min by ({PER_GPU}) (gpu_temperature_margin_celsius) <= {CLOSE_CELSIUS})
            or (
              min by ({PER_GPU}) (gpu_temperature_threshold_celsius{{kind="slowdown"}})
              - max by ({PER_GPU}) (gpu_temperature_celsius)
              <= {CLOSE_CELSIUS}
            )
            """,
            hold="15m",
            severity=Severity.WARNING,
            summary="GPU {{ $labels.gpu }} of {{ $labels.node }} is about to be slowed down by"
            " heat.",
            description="It is {{ $value }} degrees below the temperature at which the board slows"
            " itself down.",
            sources=_EXPORTER,
            labels=DEVICE,
        ),
        Alert(
            name="GPUMemoryHot",
            expr=f"""
            min by ({PER_GPU}) (gpu_temperature_threshold_celsius{{kind="memory_max"}})
            - max by ({PER_GPU}) (gpu_memory_temperature_celsius)
            <= {CLOSE_CELSIUS}
            """,
            hold="15m",
            severity=Severity.WARNING,
            summary="Memory of GPU {{ $labels.gpu }} of {{ $labels.node }} is at its highest"
            " temperature.",
            description="It is {{ $value }} degrees below what the board allows for its memory."
            " Look at airflow and fans.",
            sources=_EXPORTER,
            labels=DEVICE,
        ),
    ),
)
