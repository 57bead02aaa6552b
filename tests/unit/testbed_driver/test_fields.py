"""Field values: one call, a return code for each value."""

from ctypes import c_double, c_int32, c_int64, c_uint32, c_uint64

import pynvml
import pytest

NOT_SUPPORTED, UNKNOWN = pynvml.NVML_ERROR_NOT_SUPPORTED, pynvml.NVML_ERROR_UNKNOWN
ALL_LINKS = 0xFFFFFFFF
MEMBERS = {
    c_double: ("dVal", 2.5),
    c_uint32: ("uiVal", 2**32 - 1),
    c_uint64: ("ullVal", 2**60),
    c_int64: ("sllVal", -(2**40)),
    c_int32: ("siVal", -7),
}


@pytest.mark.parametrize("kind", MEMBERS, ids=lambda kind: kind.__name__)
def test_a_value_has_its_type_its_time_and_what_it_took(machine, kind):
    member, value = MEMBERS[kind]
    machine.answers.put_field(150, kind(value), timestamp_us=2**50, latency_us=42)
    machine.show()
    (field,) = pynvml.nvmlDeviceGetFieldValues(machine.gpu, [150])
    assert (field.nvmlReturn, field.timestamp, field.latencyUsec) == (0, 2**50, 42)
    assert getattr(field.value, member) == value
    types = {"dVal": 0, "uiVal": 1, "ullVal": 3, "sllVal": 4, "siVal": 5}
    assert field.valueType == types[member]


def test_each_value_fails_by_itself(machine):
    """Support differs between fields of one call: DCGM #149, dcgm-exporter #316."""
    machine.answers.put_field(138, c_uint64(10), scope=0)
    machine.answers.put_field(138, c_uint64(30), scope=ALL_LINKS)
    machine.answers.refuse("nvmlDeviceGetFieldValues", UNKNOWN, key=(139, 0))
    machine.show()
    wanted = [(138, 0), (138, 1), (139, 0), (138, ALL_LINKS)]
    values = pynvml.nvmlDeviceGetFieldValues(machine.gpu, wanted)
    assert [(value.fieldId, value.scopeId) for value in values] == wanted
    assert [value.nvmlReturn for value in values] == [0, NOT_SUPPORTED, UNKNOWN, 0]
    assert [values[row].value.ullVal for row in (0, 3)] == [10, 30]
    assert (values[1].value.ullVal, values[1].timestamp) == (0, 0)


def test_an_instance_has_no_field_values(machine):
    machine.answers.put_field(138, c_uint64(10))
    machine.show()
    with pytest.raises(pynvml.NVMLError_NotSupported):
        pynvml.nvmlDeviceGetFieldValues(machine.instance, [138])


def test_a_call_for_no_fields_is_an_invalid_argument(machine):
    invalid = pynvml.NVML_ERROR_INVALID_ARGUMENT
    assert machine.call("nvmlDeviceGetFieldValues", machine.gpu, 1, None) == invalid
    values = (pynvml.c_nvmlFieldValue_t * 1)()
    assert machine.call("nvmlDeviceGetFieldValues", machine.gpu, 0, values) == invalid
