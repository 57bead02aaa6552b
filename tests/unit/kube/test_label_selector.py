"""Label selectors of objects, as requests carry them."""

import msgspec

from adapter.api.label_selectors import parse
from slicewatch.kube.label_selector import LabelSelector


def test_a_selector_is_written_as_requests_carry_it() -> None:
    selector = msgspec.convert(
        {
            "matchLabels": {"b": "2", "a": "1"},
            "matchExpressions": [
                {"key": "c", "operator": "In", "values": ["y", "x"]},
                {"key": "d", "operator": "NotIn", "values": ["z"]},
                {"key": "e", "operator": "Exists"},
                {"key": "f", "operator": "DoesNotExist"},
            ],
        },
        LabelSelector,
    )
    assert selector.text() == "a=1,b=2,c in (x,y),d notin (z),e,!f"
    found = parse(selector.text())
    assert found.matches({"a": "1", "b": "2", "c": "x", "e": ""})
    assert not found.matches({"a": "1", "b": "2", "c": "x", "e": "", "f": ""})


def test_an_empty_selector_is_no_text() -> None:
    assert LabelSelector().text() == ""
