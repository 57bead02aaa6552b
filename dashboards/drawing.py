"""Grafana's JSON of a dashboard, by the Grafana Foundation SDK.

All of the house style is here: no line where a value is unknown, units and limits everywhere, the
same id for the same panel in every run.
"""

import json
from collections.abc import Callable
from typing import Any, Final

from grafana_foundation_sdk.builders import (
    bargauge,
    common,
    dashboard,
    prometheus,
    stat,
    statetimeline,
    table,
    timeseries,
)
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import common as shared
from grafana_foundation_sdk.models import dashboard as models
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

from dashboards.model import Dashboard, Form, Link, Panel, Query
from dashboards.variables import Variable

DATA: Final = models.DataSourceRef(type_val="prometheus", uid="${datasource}")
TAG: Final = "slicewatch"
CALM: Final = "green"
# Of tables: what every series has and nobody reads.
HIDDEN: Final = ("Time", "__name__", "instance", "job")
PALETTE: Final = {"yellow": "semi-dark-yellow", "orange": "orange", "red": "red"}
_Builder = Any  # Each form of panel has a builder of its own, with the same methods.


def text_of(board: Dashboard) -> str:
    """Return the JSON of a dashboard, as it is committed and imported."""
    builder = (
        dashboard.Dashboard(board.title)
        .uid(board.uid)
        .description(board.intent)
        .tags([TAG])
        .refresh("30s")
        .time("now-3h", "now")
        .timezone("browser")
        .tooltip(models.DashboardCursorSync.CROSSHAIR)
        .readonly()
        .link(_to_others())
        .with_variable(_datasource())
    )
    for variable in board.variables:
        builder = builder.with_variable(_variable(variable))
    number = 0
    for row in board.rows:
        number += 1
        builder = builder.with_row(dashboard.Row(row.title).id(number))
        for panel in row.panels:
            number += 1
            builder = builder.with_panel(_panel(panel).id(number))
    return json.dumps(builder.build(), cls=JSONEncoder, indent=1, sort_keys=True) + "\n"


def _to_others() -> dashboard.DashboardLink:
    return (
        dashboard.DashboardLink("Slicewatch")
        .type(models.DashboardLinkType.DASHBOARDS)
        .tags([TAG])
        .as_dropdown(True)
        .include_vars(True)
        .keep_time(True)
    )


def _datasource() -> dashboard.DatasourceVariable:
    return dashboard.DatasourceVariable("datasource").label("Data source").type("prometheus")


def _variable(variable: Variable) -> dashboard.QueryVariable:
    builder = (
        dashboard.QueryVariable(variable.name)
        .label(variable.title)
        .datasource(DATA)
        .query({
            "query": f"label_values({variable.series}, {variable.name})",
            "refId": variable.name,
        })
        .refresh(models.VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(models.VariableSort.ALPHABETICAL_ASC)
    )  # fmt: skip
    if variable.single:
        return builder
    return (
        builder.multi(True)
        .include_all(True)
        .all_value(".*")
        .current(models.VariableOption(selected=True, text="All", value="$__all"))
    )


def _panel(panel: Panel) -> _Builder:
    builder = _FORMS[panel.form](panel)
    builder = (
        builder.title(panel.title)
        .description(panel.reading)
        .datasource(DATA)
        .unit(panel.unit)
        .no_value(panel.empty)
        .span(panel.width)
        .height(panel.height)
        .thresholds(_limits(panel))
    )
    if panel.least is not None:
        builder = builder.min(panel.least)
    if panel.most is not None:
        builder = builder.max(panel.most)
    for number, query in enumerate(panel.queries):
        builder = builder.with_target(_target(panel, query, chr(ord("A") + number)))
    return builder


def _lines(panel: Panel) -> timeseries.Panel:
    limited = bool(panel.limits)
    style = (
        shared.GraphThresholdsStyleMode.LINE if limited else shared.GraphThresholdsStyleMode.OFF
    )
    return (
        timeseries.Panel()
        .line_width(1)
        .fill_opacity(8)
        .show_points(shared.VisibilityMode.NEVER)
        .span_nulls(False)
        .thresholds_style(common.GraphThresholdsStyleConfig().mode(style))
        .legend(
            common.VizLegendOptions()
            .display_mode(shared.LegendDisplayMode.TABLE)
            .placement(shared.LegendPlacement.BOTTOM)
            .show_legend(True)
            .calcs(["lastNotNull", "max"])
        )
        .tooltip(
            common.VizTooltipOptions()
            .mode(shared.TooltipDisplayMode.MULTI)
            .sort(shared.SortOrder.DESCENDING)
        )
    )


def _areas(panel: Panel) -> timeseries.Panel:
    stacked = common.StackingConfig().mode(shared.StackingMode.NORMAL).group("A")
    return _lines(panel).fill_opacity(40).stacking(stacked)


def _number(_: Panel) -> stat.Panel:
    return (
        stat.Panel()
        .graph_mode(shared.BigValueGraphMode.AREA)
        .color_mode(shared.BigValueColorMode.VALUE)
        .reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]))
    )


def _bars(_: Panel) -> bargauge.Panel:
    return (
        bargauge.Panel()
        .orientation(shared.VizOrientation.HORIZONTAL)
        .display_mode(shared.BarGaugeDisplayMode.BASIC)
        .reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]))
    )


def _states(_: Panel) -> statetimeline.Panel:
    return statetimeline.Panel().merge_values(True).row_height(0.8)


def _table(panel: Panel) -> table.Panel:
    builder = (
        table.Panel()
        .filterable(True)
        .with_transformation(models.DataTransformerConfig(id_val="merge", options={}))
        .with_transformation(_named(panel))
    )
    for link in panel.links:
        builder = builder.override_by_name(link.label, [_link(link)])
    return builder


def _named(panel: Panel) -> models.DataTransformerConfig:
    """Hide what nobody reads, and give the values their headings."""
    several = len(panel.queries) > 1
    headings = {
        f"Value #{chr(ord('A') + number)}" if several else "Value": query.legend
        for number, query in enumerate(panel.queries)
    }
    return models.DataTransformerConfig(
        id_val="organize",
        options={"excludeByName": dict.fromkeys(HIDDEN, True), "renameByName": headings},
    )


def _link(link: Link) -> models.DynamicConfigValue:
    url = (
        f"/d/slicewatch-{link.dashboard}?${{__url_time_range}}&${{cluster:queryparam}}"
        f"&var-{link.variable}=${{__value.raw}}"
    )
    return models.DynamicConfigValue(
        id_val="links", value=[{"title": f"Open {link.dashboard}", "url": url}]
    )


_FORMS: Final[dict[Form, Callable[[Panel], _Builder]]] = {
    Form.LINES: _lines,
    Form.AREAS: _areas,
    Form.NUMBER: _number,
    Form.BARS: _bars,
    Form.TABLE: _table,
    Form.STATES: _states,
}


def _limits(panel: Panel) -> dashboard.ThresholdsConfig:
    steps = [models.Threshold(value=None, color=CALM)]
    steps += [models.Threshold(value=one.value, color=PALETTE[one.colour]) for one in panel.limits]
    return dashboard.ThresholdsConfig().mode(models.ThresholdsMode.ABSOLUTE).steps(steps)


def _target(panel: Panel, query: Query, number: str) -> prometheus.Dataquery:
    target = prometheus.Dataquery().datasource(DATA).ref_id(number).expr(query.expr)
    if query.legend and panel.form is not Form.TABLE:
        target = target.legend_format(query.legend)
    if panel.form is Form.TABLE:
        return target.instant().format(PromQueryFormat.TABLE)
    return target.instant() if panel.form is Form.BARS else target.range()
