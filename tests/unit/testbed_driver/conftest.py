"""The driver with a state that the tests write themselves, without a simulated node."""

import ctypes

import pynvml
import pytest

from testbed import require
from testbed.binaries import Unavailable
from testbed.driver.answers import Answers
from testbed.driver.loaded import LoadedDriver
from testbed.driver.state import CALLS, GpuState, StateFile, SystemState

GPUS, SLOT, GPU_INSTANCE = 2, 3, 7


class Machine:
    """Two GPUs, of which the first has one MIG instance; they answer what they are told to.

    Attributes:
        answers: of the first GPU; ``show`` makes them known.
    """

    def __init__(self, path):
        self.driver = LoadedDriver()
        self.file = StateFile(path)
        self.driver.attach(path)
        self.file.put_system(SystemState(gpu_count=GPUS, cuda=13000, load=1))
        self.answers = Answers()
        self.errors = {}
        self.generation = 1
        self.show()
        self.show(Answers(), gpu=1)

    def show(self, answers=None, gpu=0):
        state = GpuState(
            present=1,
            generation=1,
            uuid=b"GPU-%d" % gpu,
            mig_capable=1,
            mig_enabled=1,
            mig_slots=7,
        )
        slot = state.slots[SLOT]
        slot.present, slot.generation, slot.gpu_instance = 1, self.generation, GPU_INSTANCE
        for name, code in self.errors.items():
            state.call_errors[CALLS.index(name)] = code
        (answers or self.answers).write(state)
        self.file.put_gpu(gpu, state)

    @property
    def gpu(self):
        return pynvml.nvmlDeviceGetHandleByIndex(0)

    @property
    def other(self):
        return pynvml.nvmlDeviceGetHandleByIndex(1)

    @property
    def instance(self):
        return pynvml.nvmlDeviceGetMigDeviceHandleByIndex(self.gpu, SLOT)

    def call(self, name, *arguments):
        """Call an entry point itself and return its code, whatever the binding makes of it."""
        return getattr(pynvml.nvmlLib, name)(*arguments)


@pytest.fixture
def machine(tmp_path):
    try:
        made = Machine(tmp_path / "driver.state")
    except Unavailable as why:
        require.skip_or_fail(str(why))
    pynvml.nvmlInit()
    yield made
    pynvml.nvmlShutdown()


@pytest.fixture
def count():
    return ctypes.c_uint(0)
