"""Settings of the health monitor: the names that clusters set already, to the letter, and ours.

Whatever cannot be meant refuses the start: a monitor that acts must not guess.
"""

import math
import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from health.expectation import MOST_GPUS
from slicewatch.service.logs import LEVELS
from slicewatch.service.server import Address
from slicewatch.service.settings import SettingsError, duration, setting

# Shorter and the API server is asked for nothing; longer and a fault is found too late to matter.
SHORTEST_INTERVAL_SECONDS: Final = 5.0
LONGEST_INTERVAL_SECONDS: Final = 600.0
# An NVIDIA GPU that works is between these; a limit outside of them never or always fires.
LOWEST_LIMIT_CELSIUS: Final = 50.0
HIGHEST_LIMIT_CELSIUS: Final = 120.0

_DNS_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
_LABEL: Final = re.compile(
    r"(?:[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?/)?[a-zA-Z0-9](?:[-\w.]{0,61}[a-zA-Z0-9])?",
    re.ASCII,
)


class TemperatureAction(StrEnum):
    """What heat alone leads to; WARN unless the board itself slows down for it."""

    WARN = "warn"
    CORDON = "cordon"


def _interval(value: object) -> float:
    seconds = duration(value)
    if not SHORTEST_INTERVAL_SECONDS <= seconds <= LONGEST_INTERVAL_SECONDS:
        raise ValueError(
            f"{value!r} is not between {SHORTEST_INTERVAL_SECONDS:g} and"
            f" {LONGEST_INTERVAL_SECONDS:g} seconds"
        )
    return seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """Reads a whole number within limits."""

    least: int
    most: int

    def __call__(self, value: object) -> int:
        """Return the number; raise ``ValueError`` for what is none or outside of the limits."""
        text = str(value).strip()
        if not _WHOLE.fullmatch(text) or not self.least <= int(text) <= self.most:
            raise ValueError(
                f"{value!r} is not a whole number between {self.least} and {self.most}"
            )
        return int(text)


_WHOLE: Final = re.compile(r"[0-9]{1,9}")


def _gpus(value: object) -> int | None:
    return None if str(value).strip() == "" else Count(least=0, most=MOST_GPUS)(value)


def _celsius(value: object) -> float:
    try:
        degrees = float(str(value).strip())
    except ValueError:
        degrees = math.nan
    if not LOWEST_LIMIT_CELSIUS <= degrees <= HIGHEST_LIMIT_CELSIUS:
        raise ValueError(
            f"{value!r} is not a number of degrees Celsius between {LOWEST_LIMIT_CELSIUS:g} and"
            f" {HIGHEST_LIMIT_CELSIUS:g}"
        )
    return degrees


def _action(value: object) -> TemperatureAction:
    try:
        return TemperatureAction(str(value).strip().lower())
    except ValueError as error:
        raise ValueError(f"{value!r} is not one of {', '.join(TemperatureAction)}") from error


def _name(value: object) -> str:
    text = str(value).strip()
    if text and not _DNS_NAME.fullmatch(text):
        raise ValueError(f"{value!r} is not the name of an object of Kubernetes")
    return text


def _label(value: object) -> str:
    text = str(value).strip()
    if text and not _LABEL.fullmatch(text):
        raise ValueError(f"{value!r} is not the name of a label of Kubernetes")
    return text


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthSettings:
    """Judge the GPUs of this node; cordon it when one fails. See also: status, simulate, evidence."""

    check_interval: float = setting(
        60.0,
        variable="CHECK_INTERVAL",
        parse=_interval,
        help="How often to look, in seconds. Nothing is lost in between: the exporter keeps what"
        " happens.",
    )
    memory_error_threshold: int = setting(
        10,
        variable="MEMORY_ERROR_THRESHOLD",
        parse=Count(least=1, most=1_000_000),
        help="From so many uncorrected memory errors within one boot on, a GPU fails. Errors that"
        " were corrected and those of earlier boots do not count.",
    )
    temperature_threshold: float = setting(
        90.0,
        variable="TEMPERATURE_THRESHOLD",
        parse=_celsius,
        help="Degrees Celsius above which a GPU is too hot, if it stays so.",
    )
    auto_cordon: bool = setting(
        True,
        variable="AUTO_CORDON",
        help="Whether to cordon the node for a fault that warrants it. false: conditions and"
        " events only, and a cordon that is ours already stays.",
    )
    temperature_action: TemperatureAction = setting(
        TemperatureAction.WARN,
        variable="TEMPERATURE_ACTION",
        parse=_action,
        help="What heat leads to: warn, unless the board slows itself down for it, or cordon.",
    )
    dry_run: bool = setting(
        False, help="Write nothing to the cluster; log and count what would be written."
    )
    node_name: str = setting(
        "", variable="NODE_NAME", parse=_name, help="Name of the Kubernetes node; required."
    )
    namespace: str = setting(
        "",
        parse=_name,
        help="Namespace of the monitors and of their budget. Empty: our own pod's.",
    )
    kubeconfig: str = setting(
        "", help="Kubeconfig file for the API server. Empty: the pod's service account."
    )
    evidence_socket: str = setting(
        "/run/slicewatch/evidence.sock",
        help="Unix socket on which the exporter of this node answers /evidence.",
    )
    listen: Address = setting(
        Address("", 9401),
        parse=Address.parse,
        help="Where to serve /metrics, /livez and /readyz.",
    )
    expected_gpus: int | None = setting(
        None,
        parse=_gpus,
        help="How many GPUs the node should have. Empty: what expected_gpus_label says.",
    )
    expected_gpus_label: str = setting(
        "nvidia.com/gpu.count",
        parse=_label,
        help="Label of the node with that number. It is not believed under MIG's single strategy,"
        " where NVIDIA's discovery counts MIG devices in it. Without it, a GPU is missed only if"
        " it was there before.",
    )
    good_polls: int = setting(
        5,
        parse=Count(least=1, most=1000),
        help="After so many polls without a fault, our cordon is taken back.",
    )
    flapping_limit: int = setting(
        3,
        parse=Count(least=1, most=100),
        help="A fault that comes so many times within a day stays until a human clears it.",
    )
    boot_grace: float = setting(
        300.0,
        parse=duration,
        help="For so long after a boot or a start of the driver, checks that depend on the node"
        " having settled raise nothing.",
    )
    hang_seconds: float = setting(
        300.0,
        parse=duration,
        help="A call into the driver that takes longer has hung for good; one under it is slow.",
    )
    budget_absolute: int = setting(
        10,
        parse=Count(least=1, most=100_000),
        help="At most so many nodes of the cluster are cordoned by the monitors at one time.",
    )
    budget_percent: int = setting(
        10,
        parse=Count(least=1, most=100),
        help="And at most so many in a hundred of the nodes that have a monitor, but always one.",
    )
    daemon_set: str = setting(
        "gpu-health-monitor",
        parse=_name,
        help="Our DaemonSet, which says how many nodes have a monitor.",
    )
    pool_label: str = setting(
        "nvidia.com/gpu.product",
        parse=_label,
        help="Label of nodes whose value names the pool that new cordons can be paused for.",
    )
    taint: bool = setting(
        False,
        help="Whether a cordon of ours also taints the node health.slicewatch.dev/gpu-unhealthy"
        " with NoSchedule.",
    )
    allow_control_plane: bool = setting(
        False, help="Whether a node of the control plane may be cordoned."
    )
    log_level: str = setting("info", help=f"Least severe level to log: {', '.join(LEVELS)}.")

    def __post_init__(self) -> None:
        faults = []
        if not self.node_name:
            faults.append(
                "node_name: set NODE_NAME to the name of the node, in a pod by the downward API"
                " (spec.nodeName)"
            )
        if not self.evidence_socket:
            faults.append("evidence_socket: set it to the exporter's evidence_socket")
        if self.hang_seconds <= 0:
            faults.append(f"hang_seconds: {self.hang_seconds:g} is not more than 0")
        if self.log_level not in LEVELS:
            faults.append(f"log_level: {self.log_level!r} is not one of {', '.join(LEVELS)}")
        if faults:
            raise SettingsError(faults)
