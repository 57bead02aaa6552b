"""How many GPUs a node should have, where nobody set the number: what its labels say of it. Pure."""

from collections.abc import Mapping
from typing import Final

# NVIDIA's feature discovery sets it; under the single strategy it counts MIG devices as GPUs.
MIG_STRATEGY: Final = "nvidia.com/mig.strategy"
SINGLE: Final = "single"


def expected_gpus(labels: Mapping[str, str], label: str) -> int | None:
    """Return the number of GPUs that a node's labels promise; None where they promise none.

    Allocatable resources are no promise: they count MIG devices and the replicas of shared GPUs,
    and a device plugin takes away what it holds to be ill.

    Args:
        labels: of the node.
        label: the one that has the number; empty for none.
    """
    text = labels.get(label, "")
    counts_mig = labels.get(MIG_STRATEGY) == SINGLE and label.startswith("nvidia.com/")
    return int(text) if text.isascii() and text.isdecimal() and not counts_mig else None
