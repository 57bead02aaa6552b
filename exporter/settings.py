"""Settings of the exporter. The users' own ``gpu-metrics.json`` is a valid settings file."""

import re
import socket
from dataclasses import dataclass

from exporter.measure.plan import check_names
from exporter.tenants.kubelet import MAX_SOCKET_PATH_BYTES
from slicewatch.catalog.model import Label
from slicewatch.service.logs import LEVELS
from slicewatch.service.server import Address
from slicewatch.service.settings import SettingsError, duration, setting

SHORTEST_TICK_SECONDS = 0.05
# To an adapter, a stream that is silent for longer than some ticks is dead.
LONGEST_TICK_SECONDS = 5.0
LABEL_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
# A window is kept tick by tick; finer ones would cost more memory than they tell.
MOST_TICKS_OF_A_WINDOW = 1000


def _socket_path(value: object) -> str:
    path = str(value)
    if len(path.encode()) > MAX_SOCKET_PATH_BYTES:
        raise ValueError(f"{path!r} is longer than the {MAX_SOCKET_PATH_BYTES} bytes of a socket")
    return path


@dataclass(frozen=True, slots=True, kw_only=True)
class ExporterSettings:
    """Read the GPUs of this node and publish them."""

    listen: Address = setting(
        Address("", 9400), parse=Address.parse, help="Address of all HTTP endpoints."
    )
    metrics: tuple[str, ...] = setting(
        (),
        help="Optional families of /metrics, wildcards allowed; none means all. Core families,"
        " health and /snapshot are never filtered.",
    )
    labels: dict[str, str] = setting({}, help="Static labels of every device series.")
    scrape_interval: float = setting(
        15.0,
        parse=duration,
        help="How often Prometheus scrapes: a snapshot that is older, and older than three ticks,"
        " makes the exporter unready. The exporter's own rhythm is tick_seconds.",
    )
    tick_seconds: float = setting(1.0, parse=duration, help="How often the GPUs are read.")
    window_seconds: float = setting(
        15.0, parse=duration, help="Over how much time means and peaks are taken."
    )
    stale_seconds: float = setting(
        5.0,
        parse=duration,
        help="A GPU that was not read for longer is reported as not answering, its values are"
        " withdrawn.",
    )
    node_name: str = setting(
        "", variable="NODE_NAME", help="Name of the Kubernetes node; the host's name by default."
    )
    kubelet_socket: str = setting(
        "/var/lib/kubelet/pod-resources/kubelet.sock",
        parse=_socket_path,
        help="The kubelet's PodResources socket; empty where there is no kubelet.",
    )
    simulate: str = setting(
        "", help="Scenario file, or the name of a shipped one: simulated GPUs instead of NVML."
    )
    simulate_node: str = setting(
        "", help="Which node of the scenario this is; the first one by default."
    )
    log_level: str = setting("info", help=f"Least severe level to log: {', '.join(LEVELS)}.")

    def __post_init__(self) -> None:
        if faults := [*self._name_faults(), *self._time_faults()]:
            raise SettingsError(faults)

    def _name_faults(self) -> list[str]:
        faults = []
        try:
            check_names(self.metrics)
        except ValueError as error:
            faults.append(f"metrics: {error}")
        ours = set(map(str, Label))
        for name in self.labels:
            if not LABEL_NAME.fullmatch(name) or name.startswith("__"):
                faults.append(
                    f"labels: {name!r} is not a valid Prometheus label name; use [a-zA-Z0-9_]"
                )
            elif name in ours:
                faults.append(f"labels: {name!r} is a label of our series; choose another name")
        if self.simulate_node and not self.simulate:
            faults.append("simulate_node: names a node of no scenario; set simulate as well")
        if self.log_level not in LEVELS:
            faults.append(f"log_level: {self.log_level!r} is none of {', '.join(LEVELS)}")
        return faults

    def _time_faults(self) -> list[str]:
        faults = [] if self.scrape_interval > 0 else ["scrape_interval: must be more than 0"]
        tick = self.tick_seconds
        if not SHORTEST_TICK_SECONDS <= tick <= LONGEST_TICK_SECONDS:
            between = f"between {SHORTEST_TICK_SECONDS:g} and {LONGEST_TICK_SECONDS:g}"
            return [*faults, f"tick_seconds: {tick:g} is not {between}"]
        if not tick <= self.window_seconds <= 600:
            faults.append(
                f"window_seconds: {self.window_seconds:g} is not within a tick ({tick:g}) and 600"
            )
        elif self.window_seconds > MOST_TICKS_OF_A_WINDOW * tick:
            faults.append(
                f"window_seconds: {self.window_seconds:g} is more than {MOST_TICKS_OF_A_WINDOW}"
                f" ticks of {tick:g} s; make the window shorter or the tick longer"
            )
        if self.stale_seconds < 2 * tick:
            faults.append(
                f"stale_seconds: {self.stale_seconds:g} is less than two ticks: every GPU would"
                " be reported as not answering from time to time"
            )
        return faults

    @property
    def node(self) -> str:
        """Return the node's name, or the host's where none was given."""
        return self.node_name or socket.gethostname()
