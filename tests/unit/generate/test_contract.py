"""The golden contract: one line per metric, so that a changed promise is a changed line."""

import dataclasses
import json

from cli.generate.contract import contract_of
from slicewatch.catalog import CATALOG
from slicewatch.catalog.model import Stability


def test_the_contract_holds_the_whole_catalog_by_name():
    made = json.loads(contract_of(CATALOG))
    assert list(made) == sorted(metric.name for metric in CATALOG)
    assert made["gpu_memory_used_bytes"] == {
        "type": "gauge",
        "unit": "bytes",
        "labels": [],
        "scopes": ["gpu", "mig"],
        "stability": "stable",
    }


def test_a_changed_promise_changes_its_own_line_and_no_other():
    metric = CATALOG["gpu_temperature_celsius"]
    changed = dataclasses.replace(metric, stability=Stability.ALPHA)
    before = contract_of(CATALOG).splitlines()
    after = contract_of([changed if m is metric else m for m in CATALOG]).splitlines()
    different = [new for old, new in zip(before, after, strict=True) if old != new]
    assert len(different) == 1
    assert metric.name in different[0]
