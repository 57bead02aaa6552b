"""What the demonstration prints for its user."""

from collections.abc import Sequence
from dataclasses import dataclass

from slicewatch.service.server import Address

API = "/apis/custom.metrics.k8s.io/v1beta2"


@dataclass(frozen=True, slots=True, kw_only=True)
class Exporter:
    """One exporter of the demonstration."""

    node: str
    address: Address


def text(
    *,
    exporters: Sequence[Exporter],
    api: Address,
    plain: Address,
    client: str,
    namespace: str | None,
    simulated: bool,
) -> str:
    """Return what to open and which requests to try.

    Args:
        exporters: one per node.
        api: where the adapter serves the metrics APIs.
        plain: where the adapter serves its page and its own metrics.
        client: file with the client certificate and key that the adapter trusts.
        namespace: one that has pods with GPUs, if any.
        simulated: whether the GPUs are.
    """
    first = exporters[0].address
    curl = f"curl -sgk --cert {client} 'https://localhost:{api.port}{API}"
    what = "simulated GPUs" if simulated else "the GPUs of this machine"
    lines = [f"Slicewatch shows {what}. Ctrl-C stops it.", "", "Open in a browser:"]
    lines += [f"  http://{e.address}/   exporter of {e.node}" for e in exporters]
    lines += [f"  http://{plain}/   the whole fleet, by the adapter", ""]
    lines += ["What Prometheus scrapes:", f"  curl -s http://{first}/metrics | grep '^gpu_'", ""]
    lines += ["What the adapter receives, one line per tick:"]
    lines += [f"  curl -sN 'http://{first}/snapshot?watch=true'", ""]
    lines += ["What a HorizontalPodAutoscaler gets, and how it is computed:"]
    if namespace is not None:
        lines += [f"  {curl}/namespaces/{namespace}/pods/*/gpu_utilization'"]
        lines += [f"  {curl}/namespaces/{namespace}/pods/*/gpu_utilization?explain=true'"]
    lines += [f"  {curl}/nodes/*/gpu_power_usage_watts'", f"  {curl}'"]
    return "\n".join(lines) + "\n"
