"""What the adapter sees of the cluster."""

from typing import Final

from slicewatch.catalog.model import Cluster, Label, Unit

REQUESTS: Final = Cluster(name="requests", reading=int)

METRICS: Final = (
    REQUESTS.gauge(
        "gpu_pod_requests",
        help="Devices requested by pods, by resource and phase of the pod.",
        unit=Unit.NONE,
        value=float,
        labels=(Label.NAMESPACE, Label.RESOURCE, Label.PHASE),
    ),
)
