"""Settings of the adapter."""

from dataclasses import dataclass

from adapter.sources.discovery import SCHEMES, target
from adapter.sources.prometheus.backend import BackendConfig
from adapter.sources.prometheus.flags import backend_of_flags
from slicewatch.service.logs import LEVELS
from slicewatch.service.server import Address
from slicewatch.service.settings import SettingsError, duration, setting


def _targets(value: object) -> tuple[str, ...]:
    parts = value.split(",") if isinstance(value, str) else value
    if not isinstance(parts, list | tuple):
        raise ValueError(f"{value!r} is not a list of addresses")  # noqa: TRY004 - for users
    return tuple(target(str(part).strip()) for part in parts if str(part).strip())


@dataclass(frozen=True, slots=True, kw_only=True)
class AdapterSettings:
    """Serves what exporters read on the custom and external metrics APIs of Kubernetes."""

    listen: Address = setting(
        Address("", 6443),
        help="Where to serve the metrics APIs over TLS, to the front proxy of kube-apiserver only.",
        parse=Address.parse,
    )
    plain_listen: Address = setting(
        Address("", 8080),
        help="Where to serve /metrics, /livez and /readyz to the kubelet and to Prometheus.",
        parse=Address.parse,
    )
    exporters: tuple[str, ...] = setting(
        (),
        help="Addresses of all exporters, such as http://10.0.0.7:9400. Empty: found through "
        "their Service.",
        parse=_targets,
    )
    exporter_service: str = setting(
        "slicewatch-exporter",
        help="Service whose EndpointSlices list the exporters.",
    )
    exporter_namespace: str = setting(
        "", help="Namespace of that Service. Empty: the adapter's own namespace."
    )
    exporter_scheme: str = setting(
        "http",
        help=f"How to speak to exporters that are found through their Service: {', '.join(SCHEMES)}.",
    )
    exporter_server_name: str = setting(
        "",
        help="Name that the certificate of every exporter is for. Empty: the host of its address, "
        "or the name of the Service through which it is found.",
    )
    exporter_ca_file: str = setting(
        "",
        help="Authorities (PEM) of the exporters' certificates, read again when they are replaced. "
        "Empty: those of the system.",
    )
    exporter_cert_file: str = setting(
        "", help="Certificate (PEM) to show to exporters, read again when it is replaced."
    )
    exporter_key_file: str = setting("", help="Key (PEM) of that certificate.")
    exporter_token_file: str = setting(
        "",
        help="File with the token to send to exporters as Authorization: Bearer, read again when "
        "it is replaced; one that they list in their snapshot_token_file.",
    )
    kubeconfig: str = setting(
        "",
        help="Kubeconfig file for the API server, read again when its credentials are rejected. "
        "Empty: the pod's service account.",
    )
    tls_cert_file: str = setting(
        "", help="Certificate (PEM) of the API port, reloaded when it is replaced."
    )
    tls_key_file: str = setting("", help="Key (PEM) of that certificate.")
    tls_ca_file: str = setting(
        "",
        help="Authorities (PEM) of that certificate, which are put into the caBundle of our "
        "APIServices. Empty: the caBundle is left as it is.",
    )
    tls_names: tuple[str, ...] = setting(
        ("slicewatch-adapter", "localhost", "127.0.0.1"),
        help="Further names and addresses in the certificate that is made if none is given.",
    )
    cert_dir: str = setting(
        "", help="Folder for the certificate that is made. Empty: a temporary one."
    )
    authority_secret: str = setting(
        "slicewatch-adapter-authority",
        help="Secret in the namespace of our Service in which all replicas keep the authority that signs the "
        "certificates that they make; it is put into the caBundle of our APIServices. Empty: "
        "certificates are self-signed, and the APIServices have to say insecureSkipTLSVerify.",
    )
    service_name: str = setting(
        "slicewatch-adapter", help="Our own Service, to which our APIServices point."
    )
    service_namespace: str = setting(
        "", help="Namespace of that Service. Empty: the adapter's own namespace."
    )
    external_metrics: bool = setting(
        True,
        help="Whether external.metrics.k8s.io is to be ours. Set it to false beside KEDA, which "
        "has it: it is served all the same, and its APIService is left alone.",
    )
    drain_seconds: float = setting(
        5.0,
        help="How long to go on answering after SIGTERM, unready, until everybody who sends "
        "requests has learned that this process ends.",
        parse=duration,
    )
    requestheader_client_ca_file: str = setting(
        "",
        help="Authorities (PEM) of the front proxy's client certificate. Empty: those that the "
        "cluster publishes in kube-system/extension-apiserver-authentication.",
    )
    requestheader_allowed_names: tuple[str, ...] = setting(
        (),
        help="Common names that the front proxy may have. Empty: those that the cluster "
        "publishes; with requestheader_client_ca_file, any.",
    )
    rules_files: tuple[str, ...] = setting(
        (),
        help="Files with rules, externalRules, backends and workloadMetrics, in "
        "prometheus-adapter's form; followed while the process runs.",
    )
    prometheus_url: str = setting(
        "",
        help="API for rules that name no backend, perhaps with a path. Empty: the one under "
        "backends.",
    )
    prometheus_verb: str = setting("POST", help="How it is asked: POST or GET.")
    prometheus_header: dict[str, str] = setting(
        {}, help="Headers for it, such as X-Scope-OrgID=team-a."
    )
    prometheus_auth_incluster: bool = setting(
        False, help="Authenticate to it as the pod's service account."
    )
    prometheus_auth_config: str = setting(
        "", help="Refused: kubeconfig files for it are not read."
    )
    prometheus_token_file: str = setting(
        "", help="Bearer token for it, read again when it is replaced."
    )
    prometheus_ca_file: str = setting(
        "", help="Authorities (PEM) of its certificate. Empty: the system's."
    )
    prometheus_client_tls_cert_file: str = setting("", help="Certificate (PEM) to show to it.")
    prometheus_client_tls_key_file: str = setting("", help="Key (PEM) of that certificate.")
    metrics_relist_interval: float = setting(
        60.0,
        help="How often backends are asked for names that rules leave open.",
        parse=duration,
    )
    metrics_max_age: float = setting(
        0.0,
        help="Labels of series that ended longer ago are not found. 0: twice "
        "metrics_relist_interval.",
        parse=duration,
    )
    rule_max_age_seconds: float = setting(
        120.0,
        help="Older samples of backends are not served, unless a rule says maxAge.",
        parse=duration,
    )
    disable_http2: bool = setting(False, help="Without effect: HTTP/2 is never spoken.")
    pool_label: str = setting(
        "nvidia.com/gpu.product",
        help="Label of nodes whose value names the pool that contention is reported for.",
    )
    fleet_page: bool = setting(
        True,
        help="Serve the fleet page at / and /fleet on the plain port: all nodes with GPUs, and which"
        " pods of which namespaces hold them, to whoever reaches that port.",
    )
    max_age_seconds: float = setting(
        15.0,
        help="Readings older than this are not served, since an autoscaler cannot tell an old "
        "value from a new one. Set it to a few ticks of the exporter, and at most to its scrape "
        "interval.",
        parse=duration,
    )
    log_level: str = setting("info", help=f"Least severe level to log: {', '.join(LEVELS)}.")

    def __post_init__(self) -> None:
        faults = self._file_faults()
        if self.exporter_scheme not in SCHEMES:
            faults.append(
                f"exporter_scheme: {self.exporter_scheme!r} is not one of {', '.join(SCHEMES)}"
            )
        if self.max_age_seconds <= 0:
            faults.append(f"max_age_seconds: {self.max_age_seconds:g} is not more than 0")
        if self.log_level not in LEVELS:
            faults.append(f"log_level: {self.log_level!r} is not one of {', '.join(LEVELS)}")
        try:
            self.backend()
        except ValueError as error:
            faults.append(str(error))
        if faults:
            raise SettingsError(faults)

    def _file_faults(self) -> list[str]:
        faults = []
        if bool(self.tls_cert_file) != bool(self.tls_key_file):
            faults.append("tls_cert_file, tls_key_file: set both or neither")
        if self.tls_ca_file and not self.tls_cert_file:
            faults.append("tls_ca_file: is of the certificate in tls_cert_file; set that, too")
        if bool(self.exporter_cert_file) != bool(self.exporter_key_file):
            faults.append("exporter_cert_file, exporter_key_file: set both or neither")
        return faults

    def backend(self) -> BackendConfig | None:
        """Return the backend of rules that name none, as prometheus-adapter's flags describe it.

        Raises:
            ValueError: they cannot be used.
        """
        return backend_of_flags(
            self.prometheus_url,
            verb=self.prometheus_verb,
            headers=self.prometheus_header,
            in_cluster=self.prometheus_auth_incluster,
            auth_config=self.prometheus_auth_config,
            token_file=self.prometheus_token_file,
            ca_file=self.prometheus_ca_file,
            certificate_file=self.prometheus_client_tls_cert_file,
            key_file=self.prometheus_client_tls_key_file,
        )
