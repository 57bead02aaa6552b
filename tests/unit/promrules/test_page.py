"""The page of rules names every key that is read, and no other."""

import re
from pathlib import Path

import pytest

from slicewatch.promrules.grouping import QUERY_FIELDS
from slicewatch.promrules.loading import load
from slicewatch.promrules.template_nodes import FUNCTIONS

PAGE = (Path(__file__).parents[3] / "docs/reference/rules.md").read_text(encoding="utf-8")


def table(heading):
    """Return the first cells of the table below a heading."""
    section = PAGE.partition(f"\n{heading}\n")[2]
    body = re.split(r"\n#+ ", section)[0]
    return re.findall(r"^\| `([^`]+)` \|", body, re.MULTILINE)


def read_keys(text, path):
    """Return the keys that are read beside an unknown one."""
    faults = load(text, file="x", others=()).faults
    (fault,) = [fault for fault in faults if fault.place.path == path]
    return set(fault.fix.removeprefix("the keys here are ").split(", "))


@pytest.mark.parametrize(
    ("headings", "text", "path"),
    [
        (["## The file"], "zzz: 1", "zzz"),
        (["## A rule", "## Additions"], "rules: [{zzz: 1}]", "rules[0].zzz"),
        (["### `seriesFilters[]`"], "rules: [{seriesFilters: [{zzz: 1}]}]", "rules[0].seriesFilters[0].zzz"),
        (["### `name`"], "rules: [{name: {zzz: 1}}]", "rules[0].name.zzz"),
        (["### `resources`"], "rules: [{resources: {zzz: 1}}]", "rules[0].resources.zzz"),
        (["#### `resources.overrides.<label>`"], "rules: [{resources: {overrides: {pod: {zzz: 1}}}}]", "rules[0].resources.overrides.pod.zzz"),
    ],
)  # fmt: skip
def test_a_table_has_the_keys_that_are_read(headings, text, path):
    documented = [key for heading in headings for key in table(heading)]
    assert set(documented) == read_keys(text, path)
    assert len(documented) == len(set(documented))


def test_external_rules_have_the_same_keys_but_for_the_mode():
    of_external = read_keys("externalRules: [{zzz: 1}]", "externalRules[0].zzz")
    assert read_keys("rules: [{zzz: 1}]", "rules[0].zzz") - of_external == {"queryMode"}


def test_fields_and_functions_of_templates_are_named():
    assert table("## Templates")[: len(QUERY_FIELDS)] == [f".{field}" for field in QUERY_FIELDS]
    assert [name for name in FUNCTIONS if f"`{name}`" not in PAGE] == []
