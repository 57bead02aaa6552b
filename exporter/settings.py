"""Settings of the exporter. The users' own ``gpu-metrics.json`` is a valid settings file."""

import re
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar
from urllib.parse import urlsplit

from exporter.dcgm.polling import page_url
from exporter.families import check_names
from exporter.measure import prices
from exporter.page import as_series_label
from exporter.release import LONGEST_SECONDS, USUAL_SECONDS, check_seconds
from exporter.tenants.kubelet import MAX_SOCKET_PATH_BYTES
from slicewatch.catalog.dcgm import HostLabel
from slicewatch.catalog.model import Label
from slicewatch.hardware.prices import DOLLARS_PER_HOUR
from slicewatch.service.logs import LEVELS
from slicewatch.service.server import Address
from slicewatch.service.settings import SettingsError, duration, setting

T = TypeVar("T")

SHORTEST_TICK_SECONDS = 0.05
# To an adapter, a stream that is silent for longer than some ticks is dead.
LONGEST_TICK_SECONDS = 5.0
LABEL_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
# A Kubernetes label: a name, after an optional domain and a slash.
POD_LABEL = re.compile(
    r"(?:[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?/)?[a-zA-Z0-9](?:[-\w.]{0,61}[a-zA-Z0-9])?",
    re.ASCII,
)
# A window is kept tick by tick; finer ones would cost more memory than they tell.
MOST_TICKS_OF_A_WINDOW = 1000
PID_NAMESPACES = ("host", "any")
# To the kernel this number means that the group stays as it is.
NO_GROUP = 2**32 - 1
LOOPBACK = {"localhost", "127.0.0.1", "::1"}


def _socket_path(value: object) -> str:
    path = str(value)
    if len(path.encode()) > MAX_SOCKET_PATH_BYTES:
        raise ValueError(f"{path!r} is longer than the {MAX_SOCKET_PATH_BYTES} bytes of a socket")
    return path


def _control_path(value: object) -> str:
    path = str(value)
    if path:
        # It is made under a longer name first.
        _socket_path(path + ".new")
    return path


def _group(value: object) -> int:
    number = str(value)
    if not (number.isascii() and number.isdigit() and int(number) < NO_GROUP):
        raise ValueError(f"{number!r} is not the number of a group")
    return int(number)


def _faults(name: str, check: Callable[[T], object], value: T) -> Iterator[str]:
    try:
        check(value)
    except ValueError as error:
        yield f"{name}: {error}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExporterSettings:
    """Read the GPUs of this node and publish them."""

    listen: Address = setting(
        Address("", 9400), parse=Address.parse, help="Address of all HTTP endpoints."
    )
    metrics: tuple[str, ...] = setting(
        (),
        help="Families of /metrics, wildcards allowed. None means 'default': all but those that"
        " are costly or wide, which docs/reference/metrics.md marks; ['default', 'gpu_nvlink_*']"
        " adds to it. Core families, health and /snapshot are never filtered.",
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
        15.0, parse=duration, help="Over how much time means are taken."
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
    dcgm_url: str = setting(
        "",
        parse=page_url,
        help="Metrics page of a dcgm-exporter on this node; empty for none. Where NVML has no"
        " utilization of MIG instances, on GPUs before Hopper, it is taken from there.",
    )
    dcgm_interval_seconds: float = setting(
        5.0,
        parse=duration,
        help="How often that page is read. dcgm-exporter itself measures every 30 s unless its"
        " --collect-interval says otherwise.",
    )
    dcgm_names: bool = setting(
        False,
        help="Show on /metrics, beside our own, the names and labels of dcgm-exporter for"
        " everything that NVML can answer; see docs/guides/from-dcgm-exporter.md.",
    )
    dcgm_host_label: str = setting(
        "Hostname",
        help="How dcgm-exporter's label with the node's name is written: 'Hostname' up to 4.8.2,"
        " 'hostname' later.",
    )
    pod_labels: tuple[str, ...] = setting(
        (),
        help="Exact names of pod labels to add to tenants, such as app.kubernetes.io/name. This"
        " and the next three ask the API server, which needs a service account with the rights.",
    )
    pod_workloads: bool = setting(
        False, help="Add to tenants what owns their pod, such as its Deployment."
    )
    resource_slices: bool = setting(
        False,
        help="Take what claimed devices are from the ResourceSlices of NVIDIA's DRA driver;"
        " without, it is told by their names.",
    )
    mig_state_label: bool = setting(
        False,
        help="Watch the node's label nvidia.com/mig.config.state, to let go of the GPUs while the"
        " MIG manager repartitions them.",
    )
    kubeconfig: str = setting(
        "",
        help="Kubeconfig file for the API server, where one of these asks it. Empty: the pod's"
        " service account.",
    )
    release_seconds: float = setting(
        USUAL_SECONDS,
        parse=lambda value: check_seconds(duration(value)),
        help="For how long NVML stays stopped when somebody wants to reset or repartition a GPU"
        f" and does not say for how long; at most {LONGEST_SECONDS:g}.",
    )
    control_socket: str = setting(
        "",
        parse=_control_path,
        help="Unix socket, in a folder that is there, on which local callers release the GPUs and"
        " ask for the state; empty for none.",
    )
    evidence_socket: str = setting(
        "",
        parse=_control_path,
        help="Unix socket, in a folder that is there, on which the health monitor of the node asks"
        " for what was read and what happened; empty for none.",
    )
    evidence_group: int | None = setting(
        None,
        parse=_group,
        help="Number of the group that may open that socket beside its owner, such as the health"
        " monitor's; by default the exporter's own group.",
    )
    kernel_log: str = setting(
        "",
        help="The kernel's log, /dev/kmsg, to take Xids from it as well: it has them in words, and"
        " from before the exporter ran. The process needs the right to read it. Empty for none.",
    )
    web_config_file: str = setting(
        "",
        help="Web configuration file of the Prometheus exporters: TLS, client certificates, basic"
        " authentication, headers, rate limit. Health endpoints need no password. It takes effect"
        " without a restart, as do the certificates that it names.",
    )
    snapshot_token_file: str = setting(
        "",
        help="File with the bearer tokens that may read /snapshot, one on each line. A change"
        " takes effect without a restart. With neither this nor snapshot_client_names everybody"
        " may who has a password, or everybody where there are none.",
    )
    snapshot_client_names: tuple[str, ...] = setting(
        (),
        help="Common or alternative names of client certificates that may read /snapshot; they"
        " are verified as web_config_file says.",
    )
    contention_window_seconds: float = setting(
        60.0,
        parse=duration,
        help="Over how much time contention of tenants is taken; NVML samples processes so rarely"
        " that less than a minute is mostly noise.",
    )
    container_links: str = setting(
        "/var/log/containers",
        help="The kubelet's folder of links to the logs of containers, which name the container"
        " of a process.",
    )
    pid_namespace: str = setting(
        "host",
        help="'host': processes are mapped to containers only in the host's PID namespace, which"
        " takes hostPID. 'any': this PID namespace is the whole node, as where nodes are"
        " containers.",
    )
    simulate: str = setting(
        "", help="Scenario file, or the name of a shipped one: simulated GPUs instead of NVML."
    )
    simulate_node: str = setting(
        "", help="Which node of the scenario this is; the first one by default."
    )
    status_page: bool = setting(
        True,
        help="Serve the status page at / and /status. It shows no more than /metrics does, to the"
        " same readers.",
    )
    prices: dict[str, float] = setting(
        dict(DOLLARS_PER_HOUR),
        help="What an hour of a whole GPU costs, by the names of models as NVML or this project has"
        " them, * for anything; the first that fits counts. What is given replaces all of the"
        " default; {} for no prices. A change takes effect without a restart.",
    )
    log_level: str = setting("info", help=f"Least severe level to log: {', '.join(LEVELS)}.")

    def __post_init__(self) -> None:
        faults = [*self._name_faults(), *self._time_faults()]
        if self.dcgm_host_label not in (spellings := [str(host) for host in HostLabel]):
            faults.append(
                f"dcgm_host_label: {self.dcgm_host_label!r} is none of {', '.join(spellings)}"
            )
        if self.pid_namespace not in PID_NAMESPACES:
            faults.append(f"pid_namespace: {self.pid_namespace!r} is neither 'host' nor 'any'")
        if faults:
            raise SettingsError(faults)

    def _name_faults(self) -> list[str]:
        faults = [*_faults("metrics", check_names, self.metrics)]
        faults += _faults("prices", prices.check, self.prices)
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
        if self.snapshot_client_names and not self.web_config_file:
            faults.append(
                "snapshot_client_names: without TLS clients show no certificate; set"
                " web_config_file, with client_auth_type in it"
            )
        if self.log_level not in LEVELS:
            faults.append(f"log_level: {self.log_level!r} is none of {', '.join(LEVELS)}")
        return [
            *faults, *self._dcgm_faults(), *self._pod_label_faults(), *self._socket_faults()
        ]  # fmt: skip

    def _socket_faults(self) -> list[str]:
        faults = []
        if self.evidence_socket and self.evidence_socket == self.control_socket:
            faults.append(
                "evidence_socket: is control_socket as well, which can release the GPUs; choose"
                " another path"
            )
        if self.evidence_group is not None and not self.evidence_socket:
            faults.append("evidence_group: opens no socket; set evidence_socket as well")
        return faults

    def _pod_label_faults(self) -> list[str]:
        faults = []
        as_series_labels: dict[str, str] = {}
        for name in self.pod_labels:
            if not POD_LABEL.fullmatch(name):
                faults.append(
                    f"pod_labels: {name!r} is not the exact name of a Kubernetes label; write it"
                    " like team or app.kubernetes.io/name"
                )
                continue
            # Prometheus has fewer characters than Kubernetes, and a series has each label once.
            label = as_series_label(name)
            other = as_series_labels.setdefault(label, name)
            if other != name:
                faults.append(f"pod_labels: {other} and {name} would be one label; choose one")
            if label in self.labels:
                faults.append(
                    f"labels: {label!r} is what pod_labels makes of {name}; choose another name"
                )
        return faults

    def _dcgm_faults(self) -> list[str]:
        faults = []
        url = urlsplit(self.dcgm_url)
        # Both exporters listen on 9400 by default, and in a pod the loopback is the pod's own.
        if url.hostname in LOOPBACK and url.port == self.listen.port:
            faults.append(
                f"dcgm_url: {self.dcgm_url} is this exporter's own page; name the node's address"
                " or the Service of dcgm-exporter"
            )
        if not 1 <= self.dcgm_interval_seconds <= 60:
            faults.append(
                f"dcgm_interval_seconds: {self.dcgm_interval_seconds:g} is not between 1 and 60"
            )
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
        elif not self.window_seconds <= self.contention_window_seconds <= 600:
            faults.append(
                f"contention_window_seconds: {self.contention_window_seconds:g} is not within"
                f" window_seconds ({self.window_seconds:g}) and 600"
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

    @property
    def asks_cluster(self) -> bool:
        """Tell whether anything is to be asked of the API server."""
        return bool(self.pod_labels) or any(
            (self.pod_workloads, self.resource_slices, self.mig_state_label)
        )
