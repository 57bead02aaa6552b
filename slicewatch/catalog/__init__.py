"""Every metric, declared once.

The exporter, the adapter's discovery, the reference page, the golden contract file and the tests
read this catalog; there is no second list. A new metric is one entry in the file of its domain,
plus a probe if the read is new.
"""

from typing import Final

from slicewatch.catalog import (
    clocks,
    cluster,
    devices,
    errors,
    events,
    gpm,
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

CATALOG: Final = Catalog(
    utilization.METRICS
    + gpm.METRICS
    + clocks.METRICS
    + memory.METRICS
    + power.METRICS
    + thermal.METRICS
    + errors.METRICS
    + state.METRICS
    + pcie.METRICS
    + nvlink.METRICS
    + events.METRICS
    + processes.METRICS
    + vgpu.METRICS
    + licensing.METRICS
    + devices.METRICS
    + tenants.METRICS
    + sharing.METRICS
    + cluster.METRICS
    + own.METRICS
)
