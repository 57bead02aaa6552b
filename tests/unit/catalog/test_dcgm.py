"""The names of dcgm-exporter: complete, bound to what exists, and enough for what people have."""

import re
from pathlib import Path

import pytest
import yaml

from slicewatch.catalog import CATALOG
from slicewatch.catalog.dcgm import ALIASES, UNANSWERED, OnMig
from slicewatch.catalog.model import Kind, Label, Scope, Unit
from slicewatch.catalog.readings.gpm import Gpm, GpmMetric

ROOT = Path(__file__).parents[3]
GUIDE = ROOT / "docs" / "guides" / "from-dcgm-exporter.md"
RECORDED = ROOT / "tests" / "recorded" / "dcgm"
ROWS = yaml.safe_load((RECORDED / "rows.yaml").read_text(encoding="utf-8"))
QUERIES = yaml.safe_load((RECORDED / "queries.yaml").read_text(encoding="utf-8"))
DASHBOARD = "NVIDIA's Grafana dashboard 12239"
NAME = re.compile(r"\bDCGM_[A-Z0-9_]+\b")

by_name = {alias.name: alias for alias in ALIASES}
without = {unanswered.name: unanswered for unanswered in UNANSWERED}


def test_every_row_of_dcgm_exporters_own_lists_is_answered_or_has_a_reason():
    assert {*ROWS["default"], *ROWS["commented"]} <= by_name.keys() | without.keys()


def test_no_name_comes_twice():
    assert len(by_name) + len(without) == len(ALIASES) + len(UNANSWERED)
    assert not by_name.keys() & without.keys()


def test_default_rows_are_marked_as_such():
    assert {a.name for a in ALIASES if a.default} == set(ROWS["default"]) - without.keys()


@pytest.mark.parametrize(
    ("source", "query"), [(source, query) for source, some in QUERIES.items() for query in some]
)
def test_every_name_in_published_queries_is_answered_or_has_a_reason(source, query):
    names = set(NAME.findall(query))
    assert names
    assert names <= by_name.keys() | without.keys()


def test_nvidias_dashboard_has_no_empty_panel():
    names = {name for query in QUERIES[DASHBOARD] for name in NAME.findall(query)}
    assert names <= by_name.keys()


@pytest.mark.parametrize("alias", ALIASES, ids=lambda alias: alias.name)
def test_an_alias_is_bound_to_a_metric_that_exists(alias):
    metric = CATALOG[alias.metric]
    assert alias.where.keys() <= set(metric.labels)
    assert metric.kind in {Kind.GAUGE, Kind.COUNTER}
    assert alias.on_mig is not OnMig.OWN or Scope.MIG in metric.scopes


def _full(reading):
    """Make a reading in which everything is known."""
    if reading is Gpm:
        return Gpm(values=dict.fromkeys(GpmMetric, 1.0))
    return reading(**dict.fromkeys(reading.__struct_fields__, 1))


@pytest.mark.parametrize(
    "alias", [a for a in ALIASES if len(a.where) == 1], ids=lambda alias: alias.name
)
def test_a_series_that_an_alias_selects_is_one_that_the_family_has(alias):
    metric = CATALOG[alias.metric]
    if tuple(alias.where) == metric.labels:
        (selected,) = alias.where.values()
        assert metric.value(_full(metric.origin.reading)).get(selected) is not None
    else:
        assert Label.LINK in metric.labels


@pytest.mark.parametrize("unanswered", UNANSWERED, ids=lambda unanswered: unanswered.name)
def test_what_to_use_instead_exists(unanswered):
    assert unanswered.reason
    assert not unanswered.instead or unanswered.instead in CATALOG


# DCGM counts in MiB, mJ and ns.
SCALES = {
    Unit.BYTES: 1 / 1024**2,
    Unit.JOULES: 1000,
    Unit.SECONDS: 1_000_000_000,
}


@pytest.mark.parametrize("alias", ALIASES, ids=lambda alias: alias.name)
def test_values_are_scaled_from_our_unit_to_that_of_dcgm(alias):
    assert alias.factor == SCALES.get(CATALOG[alias.metric].unit, 1)


def test_values_come_out_as_dcgm_exporter_would_write_them():
    assert by_name["DCGM_FI_DEV_FB_USED"].factor * 4845 * 2**20 == 4845
    assert (
        by_name["DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"].factor * 129_931_554.972 == 129_931_554_972
    )
    assert by_name["DCGM_FI_DEV_THERMAL_VIOLATION"].factor * 0.25 == 250_000_000


def test_nothing_that_a_gpu_measures_only_as_a_whole_is_shown_as_an_instances_own():
    """dcgm-exporter #216, #3: zeros for MIG instances that have no such value."""
    whole = [a.name for a in ALIASES if a.on_mig is OnMig.NOTHING]
    assert "DCGM_FI_DEV_GPU_UTIL" in whole
    assert by_name["DCGM_FI_DEV_POWER_USAGE"].on_mig is OnMig.OF_GPU
    assert by_name["DCGM_FI_DEV_FB_USED"].on_mig is OnMig.OWN


@pytest.mark.parametrize("alias", ALIASES, ids=lambda alias: alias.name)
def test_help_is_one_sentence(alias):
    assert re.fullmatch(r"[A-Z0-9][^\n]*[^.\n]\.", alias.help)


def _rows():
    """Return the first cells of the guide's tables, with the rest of their lines."""
    lines = GUIDE.read_text(encoding="utf-8").splitlines()
    found = (re.fullmatch(r"\| `(DCGM_\w+)` \|(.*)\|", line) for line in lines)
    return {match[1]: match[2] for match in found if match}


def test_the_guide_lists_every_name_with_what_answers_it():
    rows = _rows()
    assert rows.keys() == by_name.keys() | without.keys()
    for name, alias in by_name.items():
        selected = ",".join(f'{label}="{value}"' for label, value in alias.where.items())
        native = alias.metric + (f"{{{selected}}}" if selected else "")
        assert f"`{native}`" in rows[name], name
    for name, unanswered in without.items():
        assert unanswered.reason in rows[name], name
        assert unanswered.instead in rows[name], name
