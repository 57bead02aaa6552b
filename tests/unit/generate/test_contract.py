"""The golden contract: a stable metric does not change in passing."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli.generate import contract
from cli.generate.contract import ContractError, Promise
from slicewatch.catalog import CATALOG
from slicewatch.catalog.model import Stability

STABLE = Promise(
    type="gauge",
    unit="bytes",
    labels=("resource", "phase"),
    scopes=("gpu", "mig"),
    stability=Stability.STABLE,
)


def changed(**fields):
    return msgspec.structs.replace(STABLE, **fields)


@pytest.mark.parametrize(
    ("after", "said"),
    [
        ({}, ["gpu_x: is gone"]),
        ({"gpu_x": changed(type="counter")}, ["gpu_x: was a gauge, is a counter"]),
        ({"gpu_x": changed(unit="")}, ["gpu_x: its unit was bytes, is none"]),
        ({"gpu_x": changed(labels=("phase",))}, ["gpu_x: lost its label resource"]),
        ({"gpu_x": changed(scopes=("gpu",))}, ["gpu_x: is no longer there for mig"]),
        ({"gpu_x": changed(stability=Stability.ALPHA)}, ["gpu_x: was stable, is alpha"]),
        (
            {"gpu_x": changed(type="counter", labels=())},
            [
                "gpu_x: was a gauge, is a counter",
                "gpu_x: lost its label resource",
                "gpu_x: lost its label phase",
            ],
        ),
    ],
)
def test_a_broken_promise_is_named(after, said):
    assert contract.breaks({"gpu_x": STABLE}, after) == said


@pytest.mark.parametrize(
    "after",
    [
        STABLE,
        changed(labels=("resource", "phase", "node")),
        changed(labels=("phase", "resource")),
        changed(scopes=("gpu", "mig", "tenant")),
    ],
)
def test_what_only_adds_breaks_nothing(after):
    assert contract.breaks({"gpu_x": STABLE}, {"gpu_x": after, "gpu_y": STABLE}) == []


def test_an_alpha_metric_may_change_and_go():
    alpha = changed(stability=Stability.ALPHA)
    assert contract.breaks({"gpu_x": alpha, "gpu_y": alpha}, {"gpu_y": changed(type="info")}) == []


promises = st.builds(
    Promise,
    type=st.sampled_from(["gauge", "counter"]),
    unit=st.sampled_from(["", "bytes"]),
    labels=st.lists(st.sampled_from(["pod", "node"]), unique=True).map(tuple),
    scopes=st.lists(st.sampled_from(["gpu", "mig"]), unique=True).map(tuple),
    stability=st.sampled_from(Stability),
)
contracts = st.dictionaries(st.from_regex(r"gpu_[a-z]{1,5}", fullmatch=True), promises)


@given(contracts)
def test_a_contract_reads_back_and_breaks_nothing_of_itself(promised):
    again = contract.decode(contract.encode(promised))
    assert again == promised
    assert contract.breaks(promised, again) == []


@given(contracts)
def test_each_metric_has_a_line_of_its_own(promised):
    lines = contract.encode(promised).splitlines()[1:-1]
    assert [line.split('"')[1] for line in lines if line] == list(promised)


@pytest.mark.parametrize("text", ["", "[]", "{", '{"gpu_x": {}}', "<<<<<<< ours"])
def test_what_is_no_contract_is_refused(text):
    with pytest.raises(ContractError, match="golden contract cannot be read"):
        contract.decode(text)


def test_the_contract_holds_the_whole_catalog_by_name():
    made = contract.contract_of(CATALOG)
    assert list(made) == sorted(metric.name for metric in CATALOG)
    memory = made["gpu_memory_used_bytes"]
    assert (memory.type, memory.unit, memory.stability) == ("gauge", "bytes", Stability.STABLE)
    assert memory.scopes == ("gpu", "mig")
