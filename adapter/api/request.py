"""What a request asks for: its path and query parameters, parsed once per distinct URL."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Final
from urllib.parse import parse_qs

from adapter.api.label_selectors import Selector, SelectorError
from adapter.api.label_selectors import parse as parse_selector
from adapter.api.paths import ALL, ExternalPath, MetricPath, Path
from adapter.api.paths import parse as parse_path
from adapter.api.series_selector import SeriesSelector, split
from adapter.api.status import Reason, Refusal
from slicewatch.catalog.model import Combine

# A long URL is parsed again each time, so that what is kept stays small whoever asks.
LONGEST_KEPT: Final = 2048
_FALSE: Final = frozenset({"", "0", "false", "False"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiRequest:
    """A parsed URL.

    Attributes:
        objects: the label selector: which objects; of an external metric, which series.
        series: the metric label selector: which series of the objects.
        combine, window_seconds: how a value is to be made of them; None where it is not said.
        watch: whether changes are wanted instead of values.
        explain: whether an explanation is wanted instead of values.
        pretty: whether indented JSON is wanted; None if the request does not say.
    """

    path: Path
    objects: Selector
    series: Selector
    combine: Combine | None
    window_seconds: float | None
    watch: bool
    explain: bool
    pretty: bool | None


def parse(raw_path: str) -> ApiRequest:
    """Return what a raw path and its query ask for. Unknown parameters are ignored.

    Raises:
        Refusal: nothing is served there, or a parameter is malformed.
    """
    return _kept(raw_path) if len(raw_path) <= LONGEST_KEPT else _parsed(raw_path)


def _parsed(raw_path: str) -> ApiRequest:
    raw, _, text = raw_path.partition("?")
    query = {name: values[0] for name, values in parse_qs(text, keep_blank_values=True).items()}
    path = parse_path(raw)
    if isinstance(path, MetricPath):
        _check_field_selector(path, query.get("fieldSelector", ""))
    objects, chosen = _selectors(path, query)
    pretty = query.get("pretty")
    return ApiRequest(
        path=path,
        objects=objects,
        series=chosen.series,
        combine=chosen.combine,
        window_seconds=chosen.window_seconds,
        watch=query.get("watch", "") not in _FALSE,
        explain=query.get("explain", "") not in _FALSE,
        pretty=None if pretty is None else pretty not in _FALSE,
    )


_kept = lru_cache(maxsize=1024)(_parsed)


def _selectors(path: Path, query: dict[str, str]) -> tuple[Selector, SeriesSelector]:
    parameter = "labelSelector"
    try:
        objects = parse_selector(query.get(parameter, ""))
        if isinstance(path, ExternalPath):
            objects.check_expressible()
        parameter = "metricLabelSelector"
        chosen = split(parse_selector(query.get(parameter, "")))
        chosen.series.check_expressible()
    except SelectorError as error:
        raise Refusal(Reason.BadRequest, f"{parameter}: {error}", field=parameter) from error
    return objects, chosen


def _check_field_selector(path: MetricPath, selector: str) -> None:
    if not selector:
        return
    field, _, name = selector.replace("==", "=").partition("=")
    if field != "metadata.name":
        raise Refusal(
            Reason.BadRequest,
            f"fieldSelector {selector!r}: only metadata.name is supported",
            field="fieldSelector",
        )
    if path.name == ALL or name != path.name:
        raise Refusal(
            Reason.BadRequest,
            "fieldSelector metadata.name doesn't match requested name",
            field="fieldSelector",
        )
