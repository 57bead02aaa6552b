"""Who holds a device. A tenant is a container of a pod."""

from typing import Final

from slicewatch.catalog.model import Derived, Label, Scope
from slicewatch.wire.layout import Tenant

TENANT: Final = Derived(name="tenant", reading=Tenant, scopes=frozenset({Scope.TENANT}))

METRICS: Final = (
    TENANT.info(
        "gpu_tenant_info",
        help="A container to which this device, or a replica of it, is allocated.",
        labels=(Label.NAMESPACE, Label.POD, Label.CONTAINER, Label.RESOURCE, Label.REPLICA),
    ),
)
