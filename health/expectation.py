"""How many GPUs a node should have, where nobody set the number: what its labels say of it. Pure."""

import re
from collections.abc import Mapping
from typing import Final

# NVIDIA's feature discovery sets it; under the single strategy it counts MIG devices as GPUs.
MIG_STRATEGY: Final = "nvidia.com/mig.strategy"
SINGLE: Final = "single"
# A node has at most 16 of them today; a label that promises more than this is wrong.
MOST_GPUS: Final = 1024

_NUMBER: Final = re.compile(r"[0-9]{1,9}")


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
    if counts_mig or not _NUMBER.fullmatch(text) or int(text) > MOST_GPUS:
        return None
    return int(text)
