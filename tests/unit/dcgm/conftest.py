from pathlib import Path

import pytest

from slicewatch.wire.layout import Device

RECORDED = Path(__file__).parents[2] / "recorded" / "dcgm"
PARENT = "GPU-34319582-d595-d1c7-d1d2-179bcfa61660"


@pytest.fixture
def recorded():
    """Return the text of a page of tests/recorded/dcgm."""
    return lambda name: (RECORDED / f"{name}.prom").read_text(encoding="utf-8")


@pytest.fixture
def instance():
    """Make a MIG device; the one of the recording 2.6-a100-40gb unless told otherwise."""

    def make(**given):
        facts = {
            "uuid": "MIG-a", "gpu": 0, "model": "NVIDIA A100-SXM4-40GB", "parent": PARENT,
            "gpu_instance": 13, "compute_instance": 0, "profile": "1g.5gb",
        }  # fmt: skip
        return Device(**(facts | given))

    return make
