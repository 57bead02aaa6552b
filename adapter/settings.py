"""Settings of the adapter."""

from dataclasses import dataclass

from adapter.sources.discovery import target
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
    kubeconfig: str = setting(
        "",
        help="Kubeconfig file for the API server, read again when its credentials are rejected. "
        "Empty: the pod's service account.",
    )
    tls_cert_file: str = setting(
        "", help="Certificate (PEM) of the API port, reloaded when it is replaced."
    )
    tls_key_file: str = setting("", help="Key (PEM) of that certificate.")
    tls_names: tuple[str, ...] = setting(
        ("slicewatch-adapter", "localhost", "127.0.0.1"),
        help="Names and addresses in the self-signed certificate that is used if none is given.",
    )
    cert_dir: str = setting(
        "", help="Folder for the self-signed certificate. Empty: a temporary one."
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
    max_age_seconds: float = setting(
        15.0,
        help="Readings older than this are not served, since an autoscaler cannot tell an old "
        "value from a new one. Set it to a few ticks of the exporter, and at most to its scrape "
        "interval.",
        parse=duration,
    )
    log_level: str = setting("info", help=f"Least severe level to log: {', '.join(LEVELS)}.")

    def __post_init__(self) -> None:
        faults = []
        if bool(self.tls_cert_file) != bool(self.tls_key_file):
            faults.append("tls_cert_file, tls_key_file: set both or neither")
        if self.max_age_seconds <= 0:
            faults.append(f"max_age_seconds: {self.max_age_seconds:g} is not more than 0")
        if self.log_level not in LEVELS:
            faults.append(f"log_level: {self.log_level!r} is not one of {', '.join(LEVELS)}")
        if faults:
            raise SettingsError(faults)
