"""NVLink, through both implementations of the Nvml seam."""

from ctypes import c_uint32, c_uint64

import pynvml
import pytest

from exporter.nvml.protocol import Lost, Unsupported
from exporter.nvml.real.reads.nvlink import ALL_LINKS
from simulator import scenario
from slicewatch.catalog import CATALOG
from slicewatch.catalog.nvlink import ERROR_COUNTS, STATES, TRAFFIC
from slicewatch.catalog.readings.nvlink import NvlinkError, Nvlinks
from testbed.driver.answers_of import nvlink as fields

SCENARIO = """
nodes:
  - name: n
    gpus:
      - {model: H100-80GB}
      - {model: B200}
      - {model: L40S}
      - {model: A100-80GB, mig: [3g.40gb]}
      - {model: A100-80GB}
workloads:
  - name: busy
    load: 0.5
    mix: {nvlink_tx: 2048MiB, nvlink_rx: 1024MiB}
    pods: [{name: a, devices: [{node: n, gpu: 0}]}, {name: b, devices: [{node: n, gpu: 1}]}]
"""
HOPPER, BLACKWELL, CARD, PARTITIONED, AMPERE = range(5)
PROBES = (STATES, TRAFFIC, ERROR_COUNTS)
UNKNOWN, LOST = pynvml.NVML_ERROR_UNKNOWN, pynvml.NVML_ERROR_GPU_IS_LOST
DATA_SENT = pynvml.NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX
DATA_CAME = pynvml.NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX
LINK_SENT = pynvml.NVML_FI_DEV_NVLINK_COUNT_XMIT_BYTES
SENT = CATALOG["gpu_nvlink_transmitted_bytes_total"]
CAME = CATALOG["gpu_nvlink_received_bytes_total"]
ACTIVE = CATALOG["gpu_nvlink_active_links"]

of_real = pytest.mark.parametrize("world", ["real"], indirect=True)


def read(world, probe, gpu, number=0):
    session = world.session(gpu)
    return session.read(probe, session.devices().value[number])


def errors(world, gpu):
    return read(world, ERROR_COUNTS, gpu).value.by_link_and_kind()


@pytest.mark.parametrize(("gpu", "links"), [(HOPPER, 18), (BLACKWELL, 18), (AMPERE, 12)])
def test_every_link_of_a_board_in_a_socket_is_up(world, gpu, links):
    reading = read(world, STATES, gpu).value
    assert reading == Nvlinks((1,) * links)
    assert ACTIVE.value(reading) == links


def test_a_link_that_goes_down_is_named_and_counted_until_it_is_back(world):
    injection = world.inject(scenario.NvlinkDown(node="n", gpu=HOPPER, link=7))
    reading = read(world, STATES, HOPPER).value
    assert [link for link, up in reading.by_link().items() if up == 0] == ["7"]
    assert ACTIVE.value(reading) == 17
    world.clear(injection)
    assert read(world, STATES, HOPPER).value.active() == 18


@pytest.mark.parametrize("probe", PROBES, ids=lambda probe: probe.name)
def test_boards_without_nvlink_and_partitioned_ones_do_not_support_it(world, probe):
    """dcgm-exporter #726: it was missing without a word on why."""
    assert read(world, probe, CARD) == Unsupported("device")
    assert read(world, probe, PARTITIONED) == Unsupported("mig_enabled")
    assert read(world, probe, PARTITIONED, number=1) == Unsupported("mig_instance")


@pytest.mark.parametrize("gpu", [HOPPER, BLACKWELL])
def test_traffic_is_counted_in_bytes_whichever_counters_the_board_has(world, gpu):
    first = read(world, TRAFFIC, gpu).value
    world.advance(10)
    second = read(world, TRAFFIC, gpu).value
    moved = [metric.value(second) - metric.value(first) for metric in (SENT, CAME)]
    assert moved == pytest.approx([10 * 2**30, 5 * 2**30], abs=1024)


def test_traffic_counts_from_the_last_load_of_the_driver(world):
    world.inject(scenario.DriverGone(node="n", lasts=scenario.Seconds(2)))
    world.advance(6)
    world.nvml.stop()
    world.nvml.start()
    assert SENT.value(read(world, TRAFFIC, HOPPER).value) == pytest.approx(4 * 2**30, rel=0.01)


@pytest.mark.parametrize(
    ("gpu", "link", "error"),
    [
        (HOPPER, 17, NvlinkError.REPLAY),
        (HOPPER, 3, NvlinkError.CRC_FLIT),
        (HOPPER, 3, NvlinkError.RECOVERY),
        (AMPERE, 11, NvlinkError.CRC_DATA),
        (BLACKWELL, 9, NvlinkError.RECOVERY),
        (BLACKWELL, 9, NvlinkError.EFFECTIVE),
    ],
)
def test_errors_are_counted_by_link_and_kind_and_stay(world, gpu, link, error):
    trouble = scenario.NvlinkTrouble(node="n", gpu=gpu, link=link, error=error, errors=3)
    first = world.inject(trouble)
    world.advance(1)
    world.clear(first)
    world.inject(trouble)
    counts = errors(world, gpu)
    assert counts.pop((str(link), error)) == 6
    assert set(counts.values()) == {0, None}


def test_each_generation_has_its_own_kinds_of_errors_and_no_zeros_of_the_others(world):
    hopper, blackwell = errors(world, HOPPER), errors(world, BLACKWELL)
    older = {"replay", "crc", "crc_flit", "crc_data", "recovery"}
    assert {kind for (link, kind), n in hopper.items() if n == 0 and link == "0"} == older
    assert {kind for (link, kind), n in hopper.items() if n == 0 and link == "17"} == {
        "replay", "crc", "recovery",
    }  # fmt: skip
    newer = {kind for (_, kind), count in blackwell.items() if count == 0}
    assert newer & older == {"recovery"}
    assert len(newer) == 8


@of_real
def test_each_counter_of_one_call_fails_by_itself(world):
    """DCGM #149 and dcgm-exporter #316: support differs from field to field."""
    call = "nvmlDeviceGetFieldValues"
    refused = (fields.FIELDS[NvlinkError.CRC], 4)

    def change(into):
        into.refuse(call, UNKNOWN, key=refused)
        into.refuse(call, UNKNOWN, key=(DATA_CAME, ALL_LINKS))

    world.answer(HOPPER, change)
    counts = errors(world, HOPPER)
    assert counts["4", "crc"] is None
    assert (counts["3", "crc"], counts["4", "replay"]) == (0, 0)
    traffic = read(world, TRAFFIC, HOPPER).value
    assert SENT.value(traffic) > 0
    assert CAME.value(traffic) is None


@of_real
def test_a_sum_over_links_of_which_one_is_unknown_is_absent(world):
    """It would fall, and rise again: a reset of a counter that never was."""
    call = "nvmlDeviceGetFieldValues"
    world.answer(BLACKWELL, lambda into: into.refuse(call, UNKNOWN, key=(LINK_SENT, 5)))
    traffic = read(world, TRAFFIC, BLACKWELL).value
    assert SENT.value(traffic) is None
    assert CAME.value(traffic) > 0


@of_real
@pytest.mark.parametrize("word", [c_uint32(2**32 - 1), c_uint64(2**64 - 1)])
def test_a_word_for_not_available_is_never_traffic(world, word):
    world.answer(HOPPER, lambda into: into.put_field(DATA_SENT, word, scope=ALL_LINKS))
    assert not TRAFFIC.consistent(read(world, TRAFFIC, HOPPER).value)


@of_real
def test_a_link_whose_state_is_not_told_makes_the_number_of_links_unknown(world):
    call = "nvmlDeviceGetNvLinkState"
    world.answer(HOPPER, lambda into: into.refuse(call, UNKNOWN, key=(2, 0)))
    reading = read(world, STATES, HOPPER).value
    assert (reading.by_link()["2"], reading.by_link()["3"]) == (None, 1)
    assert ACTIVE.value(reading) is None


@of_real
def test_a_driver_that_claims_billions_of_links_is_asked_for_those_that_nvml_numbers(world):
    count = pynvml.NVML_FI_DEV_NVLINK_LINK_COUNT
    world.answer(AMPERE, lambda into: into.put_field(count, c_uint32(2**32 - 1)))
    reading = read(world, STATES, AMPERE).value
    assert reading.states == (1,) * 12 + (None,) * 24


@of_real
def test_a_gpu_that_is_lost_between_two_links_is_lost(world):
    world.answer(HOPPER, lambda into: into.refuse("nvmlDeviceGetNvLinkState", LOST, key=(5, 0)))
    assert read(world, STATES, HOPPER) == Lost("gpu_is_lost")
