"""The PCIe link."""

from ctypes import c_uint32

from simulator.gpu import SimulatedGpu
from testbed.driver.answers import Answers, nvml

# nvmlPcieUtilCounter_t.
TRANSMITTED, RECEIVED = 0, 1


def answers(gpu: SimulatedGpu, into: Answers) -> None:
    """Put what the link is, what it could be, what went wrong on it and what goes over it."""
    link, replays, moved = (
        gpu.links.pcie_link(),
        gpu.links.pcie_replays(),
        gpu.links.pcie_throughput(),
    )
    for call, number in (
        ("nvmlDeviceGetCurrPcieLinkGeneration", link.generation),
        ("nvmlDeviceGetMaxPcieLinkGeneration", link.max_generation),
        ("nvmlDeviceGetGpuMaxPcieLinkGeneration", link.gpu_max_generation),
        ("nvmlDeviceGetCurrPcieLinkWidth", link.width),
        ("nvmlDeviceGetMaxPcieLinkWidth", link.max_width),
        ("nvmlDeviceGetPcieReplayCounter", replays.count),
    ):
        if number is not None:
            into.put(call, number)
    into.put_field(nvml.NVML_FI_DEV_PCIE_REPLAY_COUNTER, c_uint32(replays.count))
    throughput = "nvmlDeviceGetPcieThroughput"
    into.put(throughput, moved.transmitted_kilobytes_per_second, key=(TRANSMITTED, 0))
    into.put(throughput, moved.received_kilobytes_per_second, key=(RECEIVED, 0))
