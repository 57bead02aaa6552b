"""The driver that the tests bring along has the interface of the real one."""

import ctypes
import threading

import pynvml
import pytest

from simulator import scenario
from testbed import require
from testbed.binaries import Unavailable
from testbed.driver import build, state
from testbed.driver.state import StateFile

SCENARIO = """
nodes:
  - name: n
    gpus: [{model: H100-80GB, mig: [1g.10gb, null, 1g.10gb]}, {model: RTX4090}]
"""
NOT_LOADED, UNKNOWN, MISMATCH = 9, 999, 25
TEAR_ATTEMPTS = 3000


def code_of(call, *arguments) -> int:
    with pytest.raises(pynvml.NVMLError) as error:
        call(*arguments)
    return error.value.value


def test_the_mirror_of_the_layout_has_its_size(tmp_path):
    try:
        library = ctypes.CDLL(str(build.writer()))
    except Unavailable as why:
        require.skip_or_fail(str(why))
    library.slicewatchStateSize.restype = ctypes.c_uint64
    StateFile(tmp_path / "state")
    assert (tmp_path / "state").stat().st_size == library.slicewatchStateSize()


def test_every_listed_call_is_exported_and_counted(world):
    library = pynvml.nvmlLib
    assert all(hasattr(library, name) for name in state.CALLS)
    library.slicewatchCallCount.restype = ctypes.c_uint64
    assert library.slicewatchCallCount(b"nvmlDeviceSetFanSpeed_v2") == 2**64 - 1


@pytest.mark.parametrize("version", [0, 0x01000028, 0x02000020])
def test_a_structure_of_another_version_is_refused(world, version):
    handle = pynvml.nvmlDeviceGetHandleByIndex(0)
    memory = pynvml.c_nvmlMemory_v2_t(version=version)
    answer = pynvml.nvmlLib.nvmlDeviceGetMemoryInfo_v2(handle, ctypes.byref(memory))
    assert answer == MISMATCH
    temperature = pynvml.c_nvmlTemperature_v1_t(version=version)
    answer = pynvml.nvmlLib.nvmlDeviceGetTemperatureV(handle, ctypes.byref(temperature))
    assert answer == MISMATCH


def test_version_one_of_memory_counts_what_is_reserved_as_used(world):
    handle = pynvml.nvmlDeviceGetHandleByIndex(0)
    old = pynvml.nvmlDeviceGetMemoryInfo(handle)
    new = pynvml.nvmlDeviceGetMemoryInfo(handle, pynvml.nvmlMemory_v2)
    assert old.used == new.used + new.reserved > new.used
    assert new.total == new.used + new.free + new.reserved


def test_a_handle_is_invalid_after_its_instance_is_gone_and_may_come_to_mean_another(world):
    gpu = pynvml.nvmlDeviceGetHandleByIndex(0)
    handle = pynvml.nvmlDeviceGetMigDeviceHandleByIndex(gpu, 0)
    before = pynvml.nvmlDeviceGetUUID(handle)
    world.inject(scenario.MigLayout(node="n", gpu=0, mig=("3g.40gb",)))
    assert code_of(pynvml.nvmlDeviceGetUUID, handle) == pynvml.NVML_ERROR_INVALID_ARGUMENT
    again = pynvml.nvmlDeviceGetMigDeviceHandleByIndex(gpu, 0)
    assert pynvml.nvmlDeviceGetUUID(handle) == pynvml.nvmlDeviceGetUUID(again) != before


def test_empty_and_impossible_indices_are_told_apart(world):
    gpu = pynvml.nvmlDeviceGetHandleByIndex(0)
    by_index = pynvml.nvmlDeviceGetMigDeviceHandleByIndex
    assert code_of(by_index, gpu, 1) == pynvml.NVML_ERROR_NOT_FOUND
    assert code_of(by_index, gpu, 7) == pynvml.NVML_ERROR_INVALID_ARGUMENT
    assert pynvml.nvmlDeviceGetMaxMigDeviceCount(gpu) == 7
    desktop = pynvml.nvmlDeviceGetHandleByIndex(1)
    assert code_of(by_index, desktop, 0) == pynvml.NVML_ERROR_NOT_SUPPORTED


def test_what_a_mig_instance_lacks_is_not_supported(world):
    gpu = pynvml.nvmlDeviceGetHandleByIndex(0)
    handle = pynvml.nvmlDeviceGetMigDeviceHandleByIndex(gpu, 0)
    for call in (
        pynvml.nvmlDeviceGetPowerUsage,
        pynvml.nvmlDeviceGetUtilizationRates,
        pynvml.nvmlDeviceGetMigMode,
    ):
        assert code_of(call, handle) == pynvml.NVML_ERROR_NOT_SUPPORTED
    parent = pynvml.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(handle)
    assert pynvml.nvmlDeviceGetUUID(parent) == pynvml.nvmlDeviceGetUUID(gpu)


def test_fields_have_return_codes_of_their_own(world):
    handle = pynvml.nvmlDeviceGetHandleByIndex(0)
    energy, fan = pynvml.nvmlDeviceGetFieldValues(
        handle, [pynvml.NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION, 9999]
    )
    assert energy.nvmlReturn == pynvml.NVML_SUCCESS
    assert energy.value.ullVal == world.node.gpus[0].energy_millijoules
    assert fan.nvmlReturn == pynvml.NVML_ERROR_NOT_SUPPORTED


def test_a_gpu_and_an_instance_are_found_by_uuid(world):
    gpu = world.node.gpus[0]
    for uuid in (gpu.uuid, gpu.mig_devices[1].uuid):
        handle = pynvml.nvmlDeviceGetHandleByUUID(uuid)
        assert pynvml.nvmlDeviceGetUUID(handle) == uuid
    code = code_of(pynvml.nvmlDeviceGetHandleByUUID, "GPU-none")
    assert code == pynvml.NVML_ERROR_NOT_FOUND


def test_initialisations_are_counted(world):
    pynvml.nvmlInit()
    pynvml.nvmlShutdown()
    assert pynvml.nvmlDeviceGetCount() == 2
    world.nvml.stop()
    assert code_of(pynvml.nvmlDeviceGetCount) == pynvml.NVML_ERROR_UNINITIALIZED
    assert code_of(pynvml.nvmlShutdown) == pynvml.NVML_ERROR_UNINITIALIZED


def test_errors_have_sentences(world):
    assert pynvml.nvmlErrorString(pynvml.NVML_ERROR_TIMEOUT) == "The time ran out"


def spoil_magic(content: bytearray) -> None:
    content[0] ^= 1


def spoil_version(content: bytearray) -> None:
    content[8] ^= 1


def cut(content: bytearray) -> None:
    del content[1000:]


@pytest.mark.parametrize("spoil", [spoil_magic, spoil_version, cut])
def test_a_file_of_another_layout_is_not_read(world, tmp_path, spoil, capfd):
    world.nvml.stop()
    content = bytearray((tmp_path / "driver.state").read_bytes())
    spoil(content)
    (tmp_path / "other.state").write_bytes(content)
    world.driver.attach(tmp_path / "other.state")
    assert code_of(pynvml.nvmlInit) == UNKNOWN
    assert "other.state" in capfd.readouterr().err
    world.driver.attach(tmp_path / "missing.state")
    assert code_of(pynvml.nvmlInit) == NOT_LOADED


def test_no_reader_sees_half_of_what_was_written(world):
    handle = pynvml.nvmlDeviceGetHandleByIndex(0)
    shown = state.GpuState(present=1, generation=1)
    stopping = threading.Event()

    def write() -> None:
        number = 1
        while not stopping.is_set():
            memory = shown.memory
            memory.total = memory.reserved = memory.free = memory.used = number
            world.feed.file.put_gpu(0, shown)
            number += 1

    writer = threading.Thread(target=write)
    world.feed.file.put_gpu(0, shown)
    writer.start()
    seen = set()
    try:
        for _ in range(TEAR_ATTEMPTS):
            memory = pynvml.nvmlDeviceGetMemoryInfo(handle, pynvml.nvmlMemory_v2)
            assert memory.total == memory.reserved == memory.free == memory.used
            seen.add(memory.total)
    finally:
        stopping.set()
        writer.join()
    assert len(seen) > 1


def test_a_machine_without_a_compiler_is_told_so(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Unavailable, match="gcc"):
        build.library()


def test_a_source_that_does_not_compile_is_told_so_and_not_kept(monkeypatch, tmp_path):
    for source in build.SOURCES.glob("*.[ch]"):
        (tmp_path / source.name).write_text(source.read_text() + "\nint x = y;\n")
    monkeypatch.setattr(build, "SOURCES", tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with pytest.raises(Unavailable, match=r"gcc|does not build"):
        build.writer()
    assert not list(tmp_path.glob("cache/**/*.so"))
