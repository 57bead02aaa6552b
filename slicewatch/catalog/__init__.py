"""Every metric, declared once.

The exporter, the adapter's discovery, the reference page, the golden contract file and the tests
read this tuple; there is no second list. A new metric is one entry in the file of its domain,
and a probe beside it where the read is new.
"""

from typing import Final

from slicewatch.catalog import cluster, devices, memory, own, power, tenants, utilization
from slicewatch.catalog.model import Catalog

CATALOG: Final = Catalog(
    utilization.METRICS
    + memory.METRICS
    + power.METRICS
    + devices.METRICS
    + tenants.METRICS
    + cluster.METRICS
    + own.METRICS
)
