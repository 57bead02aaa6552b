"""Who holds a device. A tenant is a container of a pod."""

from typing import Final

from slicewatch.catalog.model import Derived, Label, Scope
from slicewatch.wire.layout import Tenant

# Where the knowledge of a tenant comes from: the kubelet allocated the device to it, or it has
# processes there without that, as a pod that goes around the device plugin.
ALLOCATED, SEEN = "kubelet", "process"

TENANT: Final = Derived(name="tenant", reading=Tenant, scopes=frozenset({Scope.TENANT}))

METRICS: Final = (
    TENANT.info(
        "gpu_tenant_info",
        help="A container that holds the device or a replica of it, or is only seen to work on it.",
        labels=(
            Label.NAMESPACE,
            Label.POD,
            Label.CONTAINER,
            Label.POD_UID,
            Label.RESOURCE,
            Label.REPLICA,
            Label.CLAIM_NAMESPACE,
            Label.CLAIM,
            Label.WORKLOAD_KIND,
            Label.WORKLOAD,
            Label.SOURCE,
        ),
    ),
)
