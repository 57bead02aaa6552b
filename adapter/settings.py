"""Settings of the adapter."""

from dataclasses import dataclass

from adapter.sources.discovery import target
from slicewatch.service.logs import LEVELS
from slicewatch.service.server import Address
from slicewatch.service.settings import duration, setting


def _targets(value: object) -> tuple[str, ...]:
    parts = value.split(",") if isinstance(value, str) else value
    if not isinstance(parts, list | tuple):
        raise ValueError(f"{value!r} is no list of addresses")  # noqa: TRY004 - shown to users
    return tuple(target(str(part).strip()) for part in parts if str(part).strip())


@dataclass(frozen=True, slots=True, kw_only=True)
class AdapterSettings:
    """Serves what exporters read on the custom and external metrics APIs of Kubernetes."""

    listen: Address = setting(
        Address("0.0.0.0", 6443),
        help="Where the metrics APIs are served, by TLS, to the front proxy of kube-apiserver only.",
        parse=Address.parse,
    )
    plain_listen: Address = setting(
        Address("0.0.0.0", 8080),
        help="Where /metrics, /livez and /readyz are served to the kubelet and to Prometheus.",
        parse=Address.parse,
    )
    exporters: tuple[str, ...] = setting(
        (),
        help="Addresses of all exporters, such as http://10.0.0.7:9400. None: find them by their "
        "Service.",
        parse=_targets,
    )
    exporter_service: str = setting(
        "slicewatch-exporter",
        help="Service whose EndpointSlices tell where the exporters are.",
    )
    exporter_namespace: str = setting(
        "", help="Namespace of that Service. None: the adapter's own namespace."
    )
    kubeconfig: str = setting(
        "", help="File that tells how to reach Kubernetes. None: by the pod's service account."
    )
    tls_cert_file: str = setting(
        "", help="Certificate (PEM) of the API port, read again when it is replaced."
    )
    tls_key_file: str = setting("", help="Key (PEM) of that certificate.")
    tls_names: tuple[str, ...] = setting(
        ("slicewatch-adapter", "localhost", "127.0.0.1"),
        help="Names and addresses in the certificate that is made if none is given.",
    )
    cert_dir: str = setting(
        "", help="Folder for the certificate that is made. None: a temporary one."
    )
    requestheader_client_ca_file: str = setting(
        "",
        help="Authorities (PEM) of the front proxy's client certificate. None: those that the "
        "cluster publishes in kube-system/extension-apiserver-authentication.",
    )
    requestheader_allowed_names: tuple[str, ...] = setting(
        (),
        help="Common names that the front proxy may have. None: those that the cluster "
        "publishes; with requestheader_client_ca_file, any.",
    )
    max_age_seconds: float = setting(
        15.0,
        help="Readings that are older are not served: an autoscaler cannot tell an old value "
        "from a new one. A few ticks of the exporter, and its interval of scraping at most.",
        parse=duration,
    )
    log_level: str = setting(
        "info", help=f"Least severe level that is logged: {', '.join(LEVELS)}."
    )

    def __post_init__(self) -> None:
        if bool(self.tls_cert_file) != bool(self.tls_key_file):
            raise ValueError("tls_cert_file and tls_key_file are needed together, or neither")
        if self.max_age_seconds <= 0:
            raise ValueError(f"max_age_seconds is {self.max_age_seconds:g}, it must be above 0")
        if self.log_level not in LEVELS:
            raise ValueError(f"log_level is {self.log_level!r}; it is one of {', '.join(LEVELS)}")
