"""Evidence as it travels: what is understood, and what is refused with a reason."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slicewatch.catalog.power import TEMPERATURE
from slicewatch.catalog.readings.power import Temperature
from slicewatch.wire import evidence as wire
from slicewatch.wire.layout import Device

GPU = Device(uuid="GPU-0", gpu=0, model="NVIDIA H100")


def told(**more):
    return wire.Evidence(
        node="n", run="r", uptime_seconds=5.0, driver=wire.Driver(seconds=1.0, starts=1), **more
    )


def value(text):
    return wire.Value(reading=msgspec.Raw(text.encode()), age_seconds=1.0)


def test_each_kind_of_answer_arrives_as_what_it_was():
    readings = {
        "power": wire.Failed(error="UNKNOWN", age_seconds=2.0),
        "ecc": wire.Unsupported(reason="ecc_off"),
        "fans": wire.Lost(reason="gpu_is_lost", age_seconds=3.0),
    }
    evidence = told(gpus=(wire.Gpu(device=GPU, silent="gpu_is_lost", readings=readings),))
    assert wire.decode(wire.encode(evidence)) == evidence


def test_a_reading_is_read_as_what_its_probe_returns():
    evidence = told(
        gpus=(wire.Gpu(device=GPU, readings={"temperature": value('{"celsius":44}')}),)
    )
    said = wire.decode(wire.encode(evidence)).gpus[0].readings["temperature"]
    assert wire.read_as(TEMPERATURE, said) == Temperature(44)


@pytest.mark.parametrize("text", ["{}", '{"celsius":null}', '{"celsius":"hot"}', "[", "7"])
def test_a_reading_of_another_shape_is_refused_by_its_probe(text):
    with pytest.raises(wire.EvidenceError, match="temperature: not what this probe reads"):
        wire.read_as(TEMPERATURE, value(text))


def test_another_version_is_refused_with_what_to_do():
    body = msgspec.json.encode({"version": wire.WIRE_VERSION + 1, "other": True})
    with pytest.raises(wire.EvidenceError, match="let both be of one release"):
        wire.decode(body)


@given(st.binary(max_size=80))
def test_whatever_else_comes_is_no_evidence(body):
    with pytest.raises(wire.EvidenceError, match="not what /evidence answers"):
        wire.decode(body)
