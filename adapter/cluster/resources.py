"""The names under which the scheduler knows GPUs and their parts, and what node labels add.

Sources: NVIDIA's device plugin for the resources, its GPU feature discovery for the labels.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final, NamedTuple

PREFIX: Final = "nvidia.com/"
PRODUCT: Final = "nvidia.com/gpu.product"
MIG_CONFIG: Final = "nvidia.com/mig.config"

# Kubernetes writes 1000 as 1k. A quantity in binary units, or a fraction, is not one of devices.
_QUANTITY: Final = re.compile(r"([0-9]{1,12})([kM]?)")
_SCALES: Final = {"": 1, "k": 1_000, "M": 1_000_000}
# With the strategy "single", nvidia.com/gpu stands for MIG devices, and the product says which.
_SINGLE: Final = re.compile(r".+-MIG-([0-9]+g\.[0-9]+gb(?:\.me)?)(?:-SHARED)?")


class Group(NamedTuple):
    """What devices are counted by: what they are, and what their nodes' labels say about them.

    Attributes:
        replicas: as how many devices each is offered, where that is labelled.
    """

    product: str
    mig_config: str
    replicas: str
    resource: str
    profile: str


def count(quantity: str) -> int | None:
    """Return a whole number of devices; None for anything else."""
    found = _QUANTITY.fullmatch(quantity)
    return None if found is None else int(found[1]) * _SCALES[found[2]]


def counts(quantities: Mapping[str, str]) -> dict[str, int]:
    """Return how many devices there are by resource, of NVIDIA's resources only."""
    return {
        resource: number
        for resource, quantity in quantities.items()
        if resource.startswith(PREFIX) and (number := count(quantity)) is not None
    }


@lru_cache(maxsize=1024)
def profile_of(resource: str, product: str = "") -> str:
    """Return the MIG profile of the devices of a resource; empty for other devices."""
    name = resource.removeprefix(PREFIX).removesuffix(".shared")
    if name.startswith("mig-"):
        profile = name.removeprefix("mig-")
    else:
        found = _SINGLE.fullmatch(product)
        profile = found[1] if found else ""
    return f"{profile.removesuffix('.me')}+me" if profile.endswith(".me") else profile


def group_of(resource: str, labels: Mapping[str, str]) -> Group:
    """Return what devices of a resource are counted by on a node with these labels."""
    product = labels.get(PRODUCT, "")
    return Group(
        product=product,
        mig_config=labels.get(MIG_CONFIG, ""),
        replicas=labels.get(f"{resource.removesuffix('.shared')}.replicas", ""),
        resource=resource,
        profile=profile_of(resource, product),
    )
