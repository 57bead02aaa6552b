"""What exporters are asked for: the families that something here reads, and no others.

A node has a hundred, a fifth of which is ever served; with thousands of nodes the rest would be
most of what this process receives, and decodes.
"""

from typing import Final

from adapter import aliases
from adapter.served import NATIVE, families
from slicewatch.catalog import CATALOG

# Beside what is served: contention of pools of nodes.
CONTENTION: Final = (CATALOG["gpu_contention_ratio"], CATALOG["gpu_contended_seconds_total"])
FAMILIES: Final = families((*NATIVE, *aliases.SERVED)) | {metric.name for metric in CONTENTION}

RESOURCE: Final = "/snapshot"
PATH: Final = f"{RESOURCE}?watch=true&families={','.join(sorted(FAMILIES))}"
