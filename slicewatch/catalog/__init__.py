"""Every metric, declared once.

The exporter, the adapter's discovery, the reference page, the golden contract file and the tests
read this catalog; there is no second list. A new metric is one entry in the file of its domain,
plus a probe if the read is new.
"""

from typing import Final

from slicewatch.catalog import cluster, devices, memory, own, power, tenants, utilization
from slicewatch.catalog.index import Catalog

CATALOG: Final = Catalog(
    utilization.METRICS
    + memory.METRICS
    + power.METRICS
    + devices.METRICS
    + tenants.METRICS
    + cluster.METRICS
    + own.METRICS
)
