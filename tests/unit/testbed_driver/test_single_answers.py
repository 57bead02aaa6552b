"""Calls that pass one answer on: what was put comes out, by NVML's own structures and rules."""

import ctypes
import threading
import time
from ctypes import c_int32, c_uint32, c_uint64

import pynvml
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from testbed.driver.answers import error_counter
from testbed.driver.state import CALLS

NOT_SUPPORTED = pynvml.NVML_ERROR_NOT_SUPPORTED
INVALID = pynvml.NVML_ERROR_INVALID_ARGUMENT
MISMATCH = pynvml.NVML_ERROR_ARGUMENT_VERSION_MISMATCH
LIMITS, REMAPPED = (100_000, 700_000), (3, 1, 0, 1)
VIOLATION = pynvml.c_nvmlViolationTime_t(referenceTime=9, violationTime=2**40)
BAR1 = pynvml.c_nvmlBAR1Memory_t(bar1Total=2**37, bar1Free=2**36, bar1Used=2**36)
HISTOGRAM = pynvml.c_nvmlRowRemapperHistogramValues(max=640, high=1, partial=2, low=3, none=4)
PCI = pynvml.nvmlPciInfo_t(busId=b"00000000:8A:00.0", bus=0x8A)
THERMAL = pynvml.c_nvmlGpuThermalSettings_t(count=1)
THERMAL.sensor[0].currentTemp = 55
FEATURES = pynvml.c_nvmlGridLicensableFeatures_v4_t(isGridLicenseSupported=1)

# Entry point, payload, key, further arguments, out parameters of the C interface.
WORDS = [
    ("nvmlDeviceGetClockInfo", [1980], (1, 0), (1,), [c_uint32]),
    ("nvmlDeviceGetMaxClockInfo", [1980], (2, 0), (2,), [c_uint32]),
    ("nvmlDeviceGetClock", [1755], (1, 3), (1, 3), [c_uint32]),
    ("nvmlDeviceGetPerformanceState", [8], (0, 0), (), [c_uint32]),
    ("nvmlDeviceGetCurrentClocksEventReasons", [c_uint64(2**40 + 4)], (0, 0), (), [c_uint64]),
    ("nvmlDeviceGetSupportedClocksEventReasons", [c_uint64(0x1FF)], (0, 0), (), [c_uint64]),
    ("nvmlDeviceGetPowerUsage", [350_000], (0, 0), (), [c_uint32]),
    ("nvmlDeviceGetTotalEnergyConsumption", [c_uint64(2**50)], (0, 0), (), [c_uint64]),
    ("nvmlDeviceGetEnforcedPowerLimit", [650_000], (0, 0), (), [c_uint32]),
    ("nvmlDeviceGetPowerManagementLimit", [650_000], (0, 0), (), [c_uint32]),
    ("nvmlDeviceGetPowerManagementDefaultLimit", [700_000], (0, 0), (), [c_uint32]),
    ("nvmlDeviceGetPowerManagementLimitConstraints", LIMITS, (0, 0), (), [c_uint32, c_uint32]),
    ("nvmlDeviceGetTemperature", [61], (0, 0), (0,), [c_uint32]),
    ("nvmlDeviceGetTemperatureThreshold", [90], (3, 0), (3,), [c_uint32]),
    ("nvmlDeviceGetNumFans", [2], (0, 0), (), [c_uint32]),
    ("nvmlDeviceGetFanSpeed", [40], (0, 0), (), [c_uint32]),
    ("nvmlDeviceGetFanSpeed_v2", [41], (1, 0), (1,), [c_uint32]),
    ("nvmlDeviceGetUtilizationRates", [70, 30], (0, 0), (), [c_uint64]),
    ("nvmlDeviceGetEncoderUtilization", [10, 167_000], (0, 0), (), [c_uint32, c_uint32]),
    ("nvmlDeviceGetDecoderUtilization", [11, 167_000], (0, 0), (), [c_uint32, c_uint32]),
    ("nvmlDeviceGetJpgUtilization", [12, 167_000], (0, 0), (), [c_uint32, c_uint32]),
    ("nvmlDeviceGetOfaUtilization", [13, 167_000], (0, 0), (), [c_uint32, c_uint32]),
    ("nvmlDeviceGetEccMode", [1, 0], (0, 0), (), [c_uint32, c_uint32]),
    ("nvmlDeviceGetTotalEccErrors", [c_uint64(2**33)], (1, 0), (1, 0), [c_uint64]),
    (
        "nvmlDeviceGetMemoryErrorCounter",
        [c_uint64(5)], error_counter(1, 0, 2), (1, 0, 2), [c_uint64],
    ),
    ("nvmlDeviceGetRemappedRows", REMAPPED, (0, 0), (), [c_uint32] * 4),
    ("nvmlDeviceGetRetiredPagesPendingStatus", [1], (0, 0), (), [c_uint32]),
    ("nvmlDeviceGetCurrPcieLinkGeneration", [3], (0, 0), (), [c_uint32]),
    ("nvmlDeviceGetMaxPcieLinkGeneration", [5], (0, 0), (), [c_uint32]),
    ("nvmlDeviceGetGpuMaxPcieLinkGeneration", [5], (0, 0), (), [c_uint32]),
    ("nvmlDeviceGetCurrPcieLinkWidth", [8], (0, 0), (), [c_uint32]),
    ("nvmlDeviceGetMaxPcieLinkWidth", [16], (0, 0), (), [c_uint32]),
    ("nvmlDeviceGetPcieReplayCounter", [4], (0, 0), (), [c_uint32]),
    ("nvmlDeviceGetPcieThroughput", [12_345], (1, 0), (1,), [c_uint32]),
    ("nvmlDeviceGetNvLinkState", [1], (17, 0), (17,), [c_uint32]),
    ("nvmlDeviceGetNvLinkVersion", [7], (17, 0), (17,), [c_uint32]),
    ("nvmlDeviceGetNvLinkErrorCounter", [c_uint64(6)], (17, 1), (17, 1), [c_uint64]),
    ("nvmlDeviceGetComputeMode", [3], (0, 0), (), [c_uint32]),
    ("nvmlDeviceGetPersistenceMode", [1], (0, 0), (), [c_uint32]),
    ("nvmlDeviceGetArchitecture", [9], (0, 0), (), [c_uint32]),
    ("nvmlDeviceGetCudaComputeCapability", [9, 0], (0, 0), (), [c_int32, c_int32]),
    ("nvmlDeviceGetBrand", [14], (0, 0), (), [c_uint32]),
    ("nvmlDeviceGetVirtualizationMode", [3], (0, 0), (), [c_uint32]),
    ("nvmlDeviceGetHostVgpuMode", [1], (0, 0), (), [c_uint32]),
    ("nvmlDeviceValidateInforom", [], (0, 0), (), []),
]  # fmt: skip
STRUCTURES = [
    ("nvmlDeviceGetViolationStatus", VIOLATION, (1, 0), (1,)),
    ("nvmlDeviceGetBAR1MemoryInfo", BAR1, (0, 0), ()),
    ("nvmlDeviceGetRowRemapperHistogram", HISTOGRAM, (0, 0), ()),
    ("nvmlDeviceGetNvLinkRemotePciInfo_v2", PCI, (2, 0), (2,)),
    ("nvmlDeviceGetThermalSettings", THERMAL, (15, 0), (15,)),
    ("nvmlDeviceGetGridLicensableFeatures_v4", FEATURES, (0, 0), ()),
    (
        "nvmlDeviceGetVgpuSchedulerState",
        pynvml.c_nvmlVgpuSchedulerGetState_t(schedulerPolicy=2), (0, 0), (),
    ),
]  # fmt: skip


def made(kind, **values):
    """Make a structure of the binding; some of them take no values when they are made."""
    structure = kind()
    for name, value in values.items():
        setattr(structure, name, value)
    return structure


VERSIONED = [
    (
        "nvmlDeviceGetMarginTemperature",
        made(
            pynvml.c_nvmlMarginTemperature_v1_t,
            version=pynvml.nvmlMarginTemperature_v1,
            marginTemperature=-3,
        ),
    ),
    (
        "nvmlGpmQueryDeviceSupport",
        made(
            pynvml.c_nvmlGpmSupport_t,
            version=pynvml.NVML_GPM_SUPPORT_VERSION,
            isSupportedDevice=1,
        ),
    ),
    ("nvmlDeviceGetAddressingMode", made(pynvml.c_nvmlDeviceAddressingMode_t, value=2)),
    (
        "nvmlDeviceGetSramEccErrorStatus",
        made(pynvml.c_nvmlEccSramErrorStatus_v1_t, volatileCor=2**35, bThresholdExceeded=1),
    ),
    (
        "nvmlDeviceGetGpuFabricInfoV",
        made(
            pynvml.c_nvmlGpuFabricInfo_v3_t,
            version=pynvml.nvmlGpuFabricInfo_v3,
            cliqueId=5,
            state=3,
            healthSummary=1,
        ),
    ),
]


def words(machine, name, further, kinds, handle=None):
    outs = [kind() for kind in kinds]
    code = machine.call(name, handle or machine.gpu, *further, *map(ctypes.byref, outs))
    return code, b"".join(map(bytes, outs))


def expected(payload) -> bytes:
    return b"".join(bytes(c_uint32(part) if isinstance(part, int) else part) for part in payload)


@pytest.mark.parametrize(("name", "payload", "key", "further", "kinds"), WORDS)
def test_numbers_come_out_as_they_were_put(machine, name, payload, key, further, kinds):
    assert words(machine, name, further, kinds)[0] == NOT_SUPPORTED
    machine.answers.put(name, *payload, key=key)
    machine.show()
    assert words(machine, name, further, kinds) == (0, expected(payload))


@pytest.mark.parametrize(("name", "payload", "key", "further", "kinds"), WORDS)
def test_the_answer_of_a_gpu_is_not_that_of_its_instances_nor_of_other_gpus(
    machine, name, payload, key, further, kinds
):
    machine.answers.put(name, *payload, key=key)
    machine.show()
    assert words(machine, name, further, kinds, machine.instance)[0] == NOT_SUPPORTED
    assert words(machine, name, further, kinds, machine.other)[0] == NOT_SUPPORTED
    machine.answers.forget(name)
    machine.answers.put(name, *payload, slot=3, key=key)
    machine.show()
    answer = words(machine, name, further, kinds, machine.instance)
    assert answer == (0, expected(payload))
    assert words(machine, name, further, kinds)[0] == NOT_SUPPORTED


@pytest.mark.parametrize(("name", "payload", "key", "further", "kinds"), WORDS)
def test_an_injected_error_comes_before_the_answer(machine, name, payload, key, further, kinds):
    machine.answers.put(name, *payload, key=key)
    machine.errors[name] = pynvml.NVML_ERROR_GPU_IS_LOST
    machine.show()
    machine.driver.forget_calls()
    code, outs = words(machine, name, further, kinds)
    assert (code, outs.strip(b"\0")) == (pynvml.NVML_ERROR_GPU_IS_LOST, b"")
    assert machine.driver.calls()[name] == 1


@pytest.mark.parametrize(("name", "structure", "key", "further"), STRUCTURES)
def test_structures_come_out_as_they_were_put(machine, name, structure, key, further):
    filled = type(structure)()
    assert machine.call(name, machine.gpu, *further, ctypes.byref(filled)) == NOT_SUPPORTED
    machine.answers.put(name, structure, key=key)
    machine.show()
    assert machine.call(name, machine.gpu, *further, ctypes.byref(filled)) == 0
    assert bytes(filled) == bytes(structure)


@pytest.mark.parametrize(("name", "structure"), VERSIONED)
def test_a_versioned_structure_is_filled_only_for_a_caller_of_its_version(
    machine, name, structure
):
    filled = made(type(structure), version=structure.version)
    assert machine.call(name, machine.gpu, ctypes.byref(filled)) == NOT_SUPPORTED
    machine.answers.put_version(name, structure)
    machine.show()
    assert machine.call(name, machine.gpu, ctypes.byref(filled)) == 0
    assert bytes(filled) == bytes(structure)
    other = made(type(structure), version=structure.version ^ 0x3000000)
    before = bytes(other)
    assert machine.call(name, machine.gpu, ctypes.byref(other)) == MISMATCH
    assert bytes(other) == before


def test_a_call_may_know_several_versions_of_its_structure(machine):
    """Drivers differ in the structures that they know: nvitop #79."""
    name = "nvmlDeviceGetGpuFabricInfoV"
    kinds = {
        pynvml.c_nvmlGpuFabricInfo_v2_t: pynvml.nvmlGpuFabricInfo_v2,
        pynvml.c_nvmlGpuFabricInfo_v3_t: pynvml.nvmlGpuFabricInfo_v3,
    }
    old, new = (made(kind, version=kinds[kind], cliqueId=5) for kind in kinds)
    new.cliqueId = 6
    machine.answers.put_version(name, old)
    machine.answers.put_version(name, new)
    machine.show()
    for structure in (old, new):
        filled = made(type(structure), version=structure.version)
        assert machine.call(name, machine.gpu, ctypes.byref(filled)) == 0
        assert filled.cliqueId == structure.cliqueId


def test_a_known_version_with_another_argument_is_not_supported(machine):
    name, version = "nvmlDeviceGetTemperatureV", pynvml.nvmlTemperature_v1
    temperature = made(pynvml.c_nvmlTemperature_v1_t, version=version, temperature=-5)
    machine.answers.put_version(name, temperature, second=0)
    machine.show()
    assert pynvml.nvmlDeviceGetTemperatureV(machine.gpu, 0) == -5
    hottest = made(pynvml.c_nvmlTemperature_v1_t, version=version, sensorType=1)
    assert machine.call(name, machine.gpu, ctypes.byref(hottest)) == NOT_SUPPORTED


def test_a_refused_structure_is_refused_whatever_its_version(machine):
    machine.answers.refuse("nvmlGpmQueryDeviceSupport", NOT_SUPPORTED)
    machine.show()
    support = pynvml.c_nvmlGpmSupport_t(version=99)
    code = machine.call("nvmlGpmQueryDeviceSupport", machine.gpu, ctypes.byref(support))
    assert code == NOT_SUPPORTED


def test_a_refusal_holds_for_its_key_or_for_every_key_without_an_answer(machine):
    """A fan that shows ERR! while the others turn: nvidia_gpu_exporter #393."""
    machine.answers.put("nvmlDeviceGetFanSpeed_v2", 40, key=(0, 0))
    machine.answers.refuse("nvmlDeviceGetFanSpeed_v2", pynvml.NVML_ERROR_UNKNOWN, key=(1, 0))
    machine.answers.refuse("nvmlDeviceGetFanSpeed_v2", INVALID)
    machine.show()
    speeds = [words(machine, "nvmlDeviceGetFanSpeed_v2", (fan,), [c_uint32]) for fan in (0, 1, 2)]
    assert speeds[0] == (0, bytes(c_uint32(40)))
    assert [code for code, _ in speeds[1:]] == [pynvml.NVML_ERROR_UNKNOWN, INVALID]


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("nvmlDeviceGetClockInfo", (4,)),
        ("nvmlDeviceGetClock", (1, 4)),
        ("nvmlDeviceGetTemperature", (99,)),
        ("nvmlDeviceGetTemperatureThreshold", (99,)),
        ("nvmlDeviceGetViolationStatus", (99,)),
        ("nvmlDeviceGetTotalEccErrors", (2, 0)),
        ("nvmlDeviceGetMemoryErrorCounter", (0, 0, 99)),
        ("nvmlDeviceGetPcieThroughput", (2,)),
        ("nvmlDeviceGetNvLinkState", (99,)),
        ("nvmlDeviceGetNvLinkErrorCounter", (0, 99)),
        ("nvmlDeviceGetInforomVersion", (99,)),
    ],
)
def test_an_argument_out_of_range_is_invalid(machine, name, arguments):
    machine.answers.refuse(name, NOT_SUPPORTED)
    machine.show()
    buffer = ctypes.create_string_buffer(64)
    assert machine.call(name, machine.gpu, *arguments, buffer, 64) == INVALID


@pytest.mark.parametrize(
    ("name", "payload", "key", "further", "kinds"), [row for row in WORDS if row[-1]]
)
def test_nowhere_to_put_the_answer_is_an_invalid_argument(
    machine, name, payload, key, further, kinds
):
    machine.answers.put(name, *payload, key=key)
    machine.show()
    assert machine.call(name, machine.gpu, *further, *[None] * len(kinds)) == INVALID


def test_an_answer_of_another_size_than_the_header_says_is_reported(machine, capfd):
    machine.answers.put("nvmlDeviceGetFanSpeed", c_uint64(40))
    machine.show()
    assert words(machine, "nvmlDeviceGetFanSpeed", (), [c_uint32])[0] == pynvml.NVML_ERROR_UNKNOWN
    assert "nvmlDeviceGetFanSpeed is 8 bytes long, 4" in capfd.readouterr().err


def test_texts_need_room_for_their_end(machine):
    machine.answers.put("nvmlDeviceGetInforomImageVersion", b"G520.02")
    machine.answers.put("nvmlDeviceGetInforomVersion", b"2.1", key=(1, 0))
    machine.show()
    assert pynvml.nvmlDeviceGetInforomImageVersion(machine.gpu) == "G520.02"
    assert pynvml.nvmlDeviceGetInforomVersion(machine.gpu, pynvml.NVML_INFOROM_ECC) == "2.1"
    buffer = ctypes.create_string_buffer(8)
    call = "nvmlDeviceGetInforomImageVersion"
    small = pynvml.NVML_ERROR_INSUFFICIENT_SIZE
    assert [machine.call(call, machine.gpu, buffer, size) for size in (7, 8)] == [small, 0]


def test_the_old_names_of_event_reasons_have_the_same_answers(machine):
    machine.answers.put("nvmlDeviceGetCurrentClocksEventReasons", c_uint64(0x20))
    machine.answers.put("nvmlDeviceGetSupportedClocksEventReasons", c_uint64(0x1FF))
    machine.show()
    for kind, reasons in (("Current", 0x20), ("Supported", 0x1FF)):
        name = f"nvmlDeviceGet{kind}ClocksThrottleReasons"
        assert words(machine, name, (), [c_uint64]) == (0, bytes(c_uint64(reasons)))


def test_pcie_throughput_takes_as_long_as_it_measures(machine):
    machine.answers.put("nvmlDeviceGetPcieThroughput", 1, key=(0, 0))
    machine.show()
    begin = time.monotonic()
    assert pynvml.nvmlDeviceGetPcieThroughput(machine.gpu, 0) == 1
    assert time.monotonic() - begin >= 0.02


@given(st.integers(min_value=-(2**40), max_value=2**40))
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_number_is_cut_to_the_width_that_nvml_gives_it(machine, number):
    machine.answers.put("nvmlDeviceGetPowerUsage", number)
    machine.show()
    assert pynvml.nvmlDeviceGetPowerUsage(machine.gpu) == number % 2**32


def test_no_reader_sees_parts_of_two_answers(machine):
    stopping = threading.Event()

    def write():
        number = 0
        while not stopping.is_set():
            number += 1
            # The payload moves in the pool, too.
            rows = [c_uint32(7)] * (number % 5)
            machine.answers.put_list("nvmlDeviceGetActiveVgpus", rows)
            machine.answers.put("nvmlDeviceGetRemappedRows", *[number] * 4)
            machine.show()

    machine.answers.put("nvmlDeviceGetRemappedRows", 0, 0, 0, 0)
    machine.show()
    writer = threading.Thread(target=write)
    writer.start()
    seen = set()
    try:
        for _ in range(2000):
            rows = pynvml.nvmlDeviceGetRemappedRows(machine.gpu)
            assert len(set(rows)) == 1
            seen.add(rows[0])
    finally:
        stopping.set()
        writer.join()
    assert len(seen) > 1


def test_every_call_of_the_driver_is_exported(machine):
    assert [name for name in CALLS if not hasattr(pynvml.nvmlLib, name)] == []
