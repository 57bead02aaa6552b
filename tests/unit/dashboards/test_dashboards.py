"""Every dashboard asks for what there is, explains each panel, and is written the same each time."""

import json
import re

import pytest

from alerts.checking import series_of
from alerts.index import GROUPS
from alerts.model import Recording
from alerts.series import KUBE_STATE_METRICS
from dashboards import units
from dashboards.drawing import text_of
from dashboards.index import DASHBOARDS, filled
from dashboards.model import Form
from slicewatch.catalog import CATALOG

RECORDED = {r.name for g in GROUPS for r in g.rules if isinstance(r, Recording)}
# What prometheus-client and Prometheus add on their own.
OTHERS = {"process_cpu_seconds_total", "process_resident_memory_bytes", "up"}
PARTS = re.compile(r"_(?:bucket|count|sum)$")
QUERIES = [
    pytest.param(query.expr, id=f"{board.name}: {panel.title}: {number}")
    for board in DASHBOARDS
    for panel in board.panels
    for number, query in enumerate(panel.queries)
]
PANELS = [
    pytest.param(panel, id=f"{board.name}: {panel.title}")
    for board in DASHBOARDS
    for panel in board.panels
]


@pytest.fixture(params=DASHBOARDS, ids=lambda board: board.name)
def board(request):
    return request.param


def is_known(name):
    family = name if name in CATALOG else PARTS.sub("", name)
    return family in CATALOG or name in RECORDED | OTHERS | KUBE_STATE_METRICS


@pytest.mark.parametrize("expr", QUERIES)
def test_a_query_asks_for_series_that_there_are(expr):
    assert {name for name in series_of(expr) if not is_known(name)} == set()


@pytest.mark.parametrize("expr", QUERIES)
def test_what_is_unknown_is_not_drawn_as_zero(expr):
    assert not re.search(r"or\s+(on\s*\(\)\s*)?vector\(0\)|absent", expr)


@pytest.mark.parametrize("expr", QUERIES)
def test_a_query_has_no_word_of_grafana_left_once_it_is_filled(expr):
    assert "$" not in filled(expr, {"cluster": "c", "node": "n"})


@pytest.mark.parametrize("panel", PANELS)
def test_a_panel_says_how_to_read_it(panel):
    assert panel.reading.endswith(".")
    assert len(panel.reading) > 25
    assert panel.unit


@pytest.mark.parametrize("panel", PANELS)
def test_several_series_of_a_panel_are_told_apart(panel):
    if panel.form is not Form.NUMBER or len(panel.queries) > 1:
        assert all(query.legend for query in panel.queries)


@pytest.mark.parametrize("panel", PANELS)
def test_a_legend_names_labels_that_the_query_keeps(panel):
    for query in panel.queries:
        kept = re.findall(r"\bby\s*\(([^)]*)\)", query.expr)
        for label in re.findall(r"{{(\w+)}}", query.legend):
            assert not kept or any(re.search(rf"\b{label}\b", by) for by in kept), label


def test_panels_fill_their_rows(board):
    for row in board.rows:
        filled_width = 0
        for panel in row.panels:
            filled_width += panel.width
            assert filled_width <= 24, (row.title, panel.title)
            filled_width %= 24
        assert filled_width == 0, row.title


def test_a_dashboard_is_written_the_same_each_time(board):
    written = json.loads(text_of(board))
    assert text_of(board) == text_of(board)
    ids = [panel["id"] for panel in written["panels"]]
    assert len(set(ids)) == len(ids)
    assert written["uid"] == f"slicewatch-{board.name}"


def test_each_query_follows_the_choices_of_its_dashboard(board):
    names = {variable.name for variable in board.variables} | {"datasource"}
    used = {
        name
        for panel in board.panels
        for query in panel.queries
        for name in re.findall(r"\$(\w+)", query.expr)
        if not name.startswith("__")
    }
    assert used <= names
    assert used >= names - {"datasource"}


def test_a_link_leads_to_a_dashboard_that_has_the_choice():
    by_name = {board.name: board for board in DASHBOARDS}
    for board in DASHBOARDS:
        for link in (link for panel in board.panels for link in panel.links):
            assert link.variable in {v.name for v in by_name[link.dashboard].variables}


def test_a_metric_that_there_is_not_has_no_unit():
    with pytest.raises(KeyError):
        units.of("gpu_utilisation")
    with pytest.raises(KeyError, match="is no counter"):
        units.rate_of("gpu_utilization")


def test_an_unknown_word_of_grafana_is_an_error():
    with pytest.raises(KeyError):
        filled("rate(x[$__rate_intervall])")
