"""Every metric, declared once.

The exporter, the adapter's discovery, the reference page, the golden contract file and the tests
read this catalog; there is no second list. A new metric is one entry in the file of its domain,
plus a probe if the read is new.
"""

from types import ModuleType
from typing import Final

from slicewatch.catalog import (
    clocks,
    cluster,
    cost,
    devices,
    errors,
    events,
    gpm,
    health,
    licensing,
    memory,
    nvlink,
    own,
    pcie,
    power,
    processes,
    sharing,
    state,
    tenants,
    thermal,
    utilization,
    vgpu,
)
from slicewatch.catalog.index import Catalog

# Titles are for people who look through them.
DOMAINS: Final[tuple[tuple[str, ModuleType], ...]] = (
    ("Utilization", utilization),
    ("Parts of a GPU (GPM)", gpm),
    ("Clocks", clocks),
    ("Memory", memory),
    ("Power, energy, temperature", power),
    ("Heat and fans", thermal),
    ("Memory errors", errors),
    ("Set-up", state),
    ("PCIe", pcie),
    ("NVLink", nvlink),
    ("Events", events),
    ("Processes", processes),
    ("vGPU hosts", vgpu),
    ("vGPU guests", licensing),
    ("Devices", devices),
    ("Tenants", tenants),
    ("Sharing and contention", sharing),
    ("Cost", cost),
    ("Cluster", cluster),
    ("Slicewatch itself", own),
    ("Health of GPUs and nodes", health),
)
CATALOG: Final = Catalog(tuple(metric for _, domain in DOMAINS for metric in domain.METRICS))
