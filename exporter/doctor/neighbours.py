"""Those that the exporter asks besides the driver, asked as it asks them. What is wrong is raised."""

import contextlib
import http.client
import socket
import ssl
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Final

from exporter.access import read_tokens
from exporter.dcgm import polling
from exporter.dcgm.source import DcgmSource
from exporter.doctor.facts import NoAnswer
from exporter.settings import ExporterSettings
from exporter.tenants.kubelet import Kubelet
from exporter.tenants.processes import HostProcesses
from exporter.tenants.protocol import Allocation, Offer
from slicewatch.service.web.config import read as read_web_config

DEADLINE_SECONDS: Final = 2.0
FREE: Final = "free: no exporter runs here"


def file_faults(settings: ExporterSettings) -> Iterator[str]:
    """Yield what is wrong with the files that the settings name."""
    for name, read in (("web_config_file", read_web_config), ("snapshot_token_file", read_tokens)):
        if path := getattr(settings, name):
            try:
                read(Path(path))
            except (OSError, ValueError) as error:
                yield f"{name}: {error}"


def ask_processes(settings: ExporterSettings) -> str | NoAnswer:
    """Tell whether processes can be mapped to containers."""
    whole = settings.pid_namespace == "any"
    processes = HostProcesses(pid_namespace="any" if whole else "host")
    fault = processes.fault
    processes.close()
    return NoAnswer(fault) if fault else "all can be read"


def ask_links(settings: ExporterSettings) -> str | NoAnswer:
    """Count the links to the logs of containers."""
    count = sum(1 for _ in Path(settings.container_links).iterdir())
    return f"{count} links" if count else NoAnswer(f"{settings.container_links} is empty")


async def ask_allocations(path: str) -> tuple[Allocation, ...]:
    """Ask the kubelet for List."""
    async with Kubelet(Path(path), deadline_seconds=DEADLINE_SECONDS) as kubelet:
        return await kubelet.list()


async def ask_offers(path: str) -> tuple[Offer, ...]:
    """Ask the kubelet for GetAllocatableResources."""
    async with Kubelet(Path(path), deadline_seconds=DEADLINE_SECONDS) as kubelet:
        return await kubelet.offers()


async def ask_dcgm(settings: ExporterSettings) -> str | NoAnswer:
    """Read the page of the dcgm-exporter once."""
    source = DcgmSource(interval_seconds=settings.dcgm_interval_seconds, reject=lambda _: None)
    async with polling.session() as client:
        await polling.refresh(source, client, settings.dcgm_url, time.monotonic)
    where = settings.dcgm_url
    return NoAnswer(f"{where}: {source.fault}") if source.fault else f"{where} has profiling"


async def ask_api_server(settings: ExporterSettings) -> str:
    """List one object of each kind that the settings ask for; raise ``KubeError`` if refused."""
    from slicewatch.kube.client import ApiServer
    from slicewatch.kube.configuration import connect
    from slicewatch.kube.objects import NODE_METADATA, POD_IDENTITY, RESOURCE_SLICE, Selection

    here, limit = Selection(node=settings.node), 1
    reconnect = partial(connect, settings.kubeconfig)
    server = ApiServer(await reconnect(), reconnect)
    try:
        if settings.pod_labels or settings.pod_workloads:
            await server.list(POD_IDENTITY, here, limit=limit)
        if settings.resource_slices:
            await server.list(RESOURCE_SLICE, here, limit=limit)
        if settings.mig_state_label:
            await server.list(NODE_METADATA, Selection(name=settings.node), limit=limit)
    finally:
        await server.close()
    return "lists what is asked for"


def ask_port(settings: ExporterSettings) -> str | NoAnswer:
    """Tell who has the exporter's address, and how an exporter there is."""
    address = settings.listen
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    try:
        socket.create_server((address.host, address.port), family=family).close()
    except OSError as error:
        fault = error.strerror or str(error)
    else:
        return FREE
    try:
        said = _readiness(settings)
    except (OSError, http.client.HTTPException) as error:
        return NoAnswer(f"{address}: {fault}, and what is there does not say how it is: {error}")
    if "snapshots " not in said:
        return NoAnswer(f"{address}: {fault}, by something that is no exporter")
    return NoAnswer(said) if "[-]" in said else f"an exporter: {said}"


def _readiness(settings: ExporterSettings) -> str:
    place = settings.listen.host or "localhost", settings.listen.port
    connection = http.client.HTTPConnection(*place, timeout=1)
    if settings.web_config_file and read_web_config(Path(settings.web_config_file)).tls:
        # Nothing secret is asked, and the certificate is made for another name.
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        connection = http.client.HTTPSConnection(*place, timeout=1, context=context)
    with contextlib.closing(connection):
        connection.request("GET", "/readyz?verbose")
        return connection.getresponse().read(4096).decode(errors="replace").strip()
