"""How a board is set up."""

from simulator.gpu import SimulatedGpu
from slicewatch.catalog.readings.state import Fabric
from testbed.driver.answers import Answers, nvml

# What a driver in trouble leaves in the place of a text.
_NO_TEXT = b"\xff\xff"
FABRIC = "nvmlDeviceGetGpuFabricInfoV"
INFOROM_CHECK = "nvmlDeviceValidateInforom"


def answers(gpu: SimulatedGpu, into: Answers) -> None:
    """Put modes, generation, InfoROM and fabric. The MIG mode is part of what a GPU is."""
    modes, generation = gpu.setup.modes(), gpu.setup.generation()
    into.put("nvmlDeviceGetPersistenceMode", modes.persistence or 0)
    into.put("nvmlDeviceGetEccMode", modes.ecc_current or 0, modes.ecc_pending or 0)
    into.put("nvmlDeviceGetArchitecture", generation.architecture or 0)
    major, minor = generation.cuda_major or 0, generation.cuda_minor or 0
    into.put("nvmlDeviceGetCudaComputeCapability", major, minor)
    mode = gpu.setup.compute_mode().number
    slots = [device.index for device in gpu.mig_devices]
    for slot in slots if gpu.mig_enabled else [None]:
        into.put("nvmlDeviceGetComputeMode", mode, slot=slot)
    _put_inforom(gpu, into)
    fabric = gpu.setup.fabric()
    if fabric is not None:
        _put_fabric(fabric, into)


def _put_inforom(gpu: SimulatedGpu, into: Answers) -> None:
    inforom = gpu.setup.inforom()
    for number, version in enumerate((inforom.oem, inforom.ecc, inforom.power)):
        if version is not None:
            into.put("nvmlDeviceGetInforomVersion", version.encode(), key=(number, 0))
    image = _NO_TEXT if inforom.image is None else inforom.image.encode()
    into.put("nvmlDeviceGetInforomImageVersion", image)
    check = gpu.setup.inforom_check()
    if check is not None and check.valid:
        into.put(INFOROM_CHECK)
    elif check is not None:
        into.refuse(INFOROM_CHECK, nvml.NVML_ERROR_CORRUPTED_INFOROM)


def _put_fabric(fabric: Fabric, into: Answers) -> None:
    """Put the structure of version 2 and that of version 3, which has the summary."""
    for info in (nvml.c_nvmlGpuFabricInfo_v2_t(), nvml.c_nvmlGpuFabricInfo_v3_t()):
        info.state, info.status, info.healthMask = fabric.state, fabric.status, fabric.health_mask
        if info.version == nvml.nvmlGpuFabricInfo_v3:
            info.healthSummary = fabric.health_summary or 0
        into.put_version(FABRIC, info)
