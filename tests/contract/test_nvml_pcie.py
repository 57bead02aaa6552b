"""The PCIe link, through both implementations of the Nvml seam."""

import pynvml
import pytest

from exporter.nvml.protocol import Failed, Unsupported, Value
from simulator import scenario
from slicewatch.catalog.pcie import LINK, METRICS, REPLAY, THROUGHPUTS
from slicewatch.catalog.readings.pcie import PcieLink, PcieReplays, PcieThroughput

SCENARIO = """
nodes:
  - name: n
    gpus:
      - {model: H100-80GB}
      - {model: RTX4090}
      - {model: A100-80GB, mig: [3g.40gb]}
workloads:
  - name: busy
    load: 0.5
    mix: {pcie_rx: 2GB, pcie_tx: 600MB}
    pods: [{name: a, devices: [{node: n, gpu: 0}]}]
"""
HOPPER, CARD, PARTITIONED = range(3)
UNKNOWN, NOT_SUPPORTED = pynvml.NVML_ERROR_UNKNOWN, pynvml.NVML_ERROR_NOT_SUPPORTED


def read(world, probe, gpu, number=0):
    session = world.session(gpu)
    return session.read(probe, session.devices().value[number])


def test_a_busy_board_has_the_link_that_its_slot_allows(world):
    assert read(world, LINK, HOPPER) == Value(PcieLink(5, 5, 5, 16, 16))


def test_the_link_of_an_idle_card_is_slow_but_could_be_fast(world):
    assert read(world, LINK, CARD) == Value(PcieLink(1, 4, 4, 16, 16))


def test_a_degraded_link_differs_from_its_maximum_until_it_is_repaired(world):
    fault = scenario.PcieDegraded(node="n", gpu=HOPPER, width=8, generation=3)
    injection = world.inject(fault)
    assert read(world, LINK, HOPPER) == Value(PcieLink(3, 5, 5, 8, 16))
    world.clear(injection)
    assert read(world, LINK, HOPPER) == Value(PcieLink(5, 5, 5, 16, 16))


def test_replays_add_up_and_stay(world):
    assert read(world, REPLAY, HOPPER) == Value(PcieReplays(0))
    world.inject(scenario.PcieReplays(node="n", gpu=HOPPER, packets=5))
    injection = world.inject(scenario.PcieReplays(node="n", gpu=HOPPER, every=scenario.Seconds(2)))
    world.advance(5)
    world.clear(injection)
    assert read(world, REPLAY, HOPPER) == Value(PcieReplays(5 + 3))
    assert read(world, REPLAY, CARD) == Value(PcieReplays(0))


def test_throughput_is_what_the_workload_moves_by_direction(world):
    assert read(world, THROUGHPUTS, HOPPER) == Value(PcieThroughput(1_000_000, 300_000))
    (throughput,) = [metric for metric in METRICS if metric.origin is THROUGHPUTS]
    assert throughput.value(read(world, THROUGHPUTS, HOPPER).value) == {
        "receive": 1e9, "transmit": 3e8,
    }  # fmt: skip


@pytest.mark.parametrize("probe", [LINK, REPLAY, THROUGHPUTS], ids=lambda probe: probe.name)
def test_an_instance_has_no_link_of_its_own_and_its_gpu_has(world, probe):
    assert read(world, probe, PARTITIONED, number=1) == Unsupported("mig_instance")
    assert isinstance(read(world, probe, PARTITIONED), Value)


@pytest.mark.parametrize("world", ["real"], indirect=True)
def test_what_a_driver_does_not_state_of_a_link_is_absent(world):
    world.answer(HOPPER, lambda into: into.forget("nvmlDeviceGetGpuMaxPcieLinkGeneration"))
    reading = read(world, LINK, HOPPER).value
    assert reading == PcieLink(5, 5, None, 16, 16)
    assert reading.generations()["gpu_max"] is None


@pytest.mark.parametrize("world", ["real"], indirect=True)
def test_a_link_that_is_not_stated_at_all_is_not_supported(world):
    def forget(into):
        for part in ("Curr", "Max", "GpuMax"):
            into.forget(f"nvmlDeviceGet{part}PcieLinkGeneration")
        into.forget("nvmlDeviceGetCurrPcieLinkWidth")
        into.forget("nvmlDeviceGetMaxPcieLinkWidth")

    world.answer(HOPPER, forget)
    assert read(world, LINK, HOPPER) == Unsupported("device")


@pytest.mark.parametrize("world", ["real"], indirect=True)
def test_half_a_measurement_is_none(world):
    call = "nvmlDeviceGetPcieThroughput"
    world.answer(HOPPER, lambda into: into.refuse(call, UNKNOWN, key=(0, 0)))
    assert read(world, THROUGHPUTS, HOPPER) == Failed("UNKNOWN")
