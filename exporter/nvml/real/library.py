"""The life of the library: start, enumeration, stop."""

import _ctypes
import contextlib
import os
import time
from collections.abc import Callable

import pynvml
from pynvml import NVMLError

from exporter.nvml.protocol import Driver, EventSource, Outcome, Session
from exporter.nvml.real import events, identity
from exporter.nvml.real.returns import GONE, Return, unavailable
from exporter.nvml.real.session import RealSession
from exporter.nvml.samples import CursorsByGpu
from slicewatch.wire.layout import Device


class RealNvml:
    """NVML of this process; see ``protocol.Nvml``.

    Args:
        cpu_nanoseconds: the clock that the driver stamps its samples with, since 1970.
        monotonic_nanoseconds: the clock that samples of counters are stamped with.
    """

    def __init__(
        self,
        cpu_nanoseconds: Callable[[], int] = time.time_ns,
        monotonic_nanoseconds: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._started = False
        self._cpu_nanoseconds = cpu_nanoseconds
        self._monotonic_nanoseconds = monotonic_nanoseconds
        self._cursors = CursorsByGpu()

    def start(self) -> Driver:
        """Initialise, once until the next ``stop``.

        Raises:
            DriverUnavailableError: there is no library or driver, or they do not fit together.
        """
        if self._started:
            raise RuntimeError("NVML is started already; stop it first")
        # With it set, NVML would list a GPU once for each of its MPS partitions.
        os.environ.pop("NVML_MPS_DEVICE_ENUMERATION", None)
        try:
            pynvml.nvmlInit()
            self._started = True
            return Driver(
                driver=_text(pynvml.nvmlSystemGetDriverVersion),
                nvml=_stated(pynvml.nvmlSystemGetNVMLVersion),
                cuda=_stated(lambda: _dotted(pynvml.nvmlSystemGetCudaDriverVersion_v2())),
            )
        except NVMLError as error:
            self.stop()
            if error.value == Return.LIB_RM_VERSION_MISMATCH:
                _forget_library()
            raise unavailable(error.value) from error

    def stop(self) -> None:
        """Shut down, if it is started; nothing of the driver is held after it."""
        if not self._started:
            return
        self._started = False
        # It may be gone already, which is what the caller wants.
        with contextlib.suppress(NVMLError):
            pynvml.nvmlShutdown()

    def count(self) -> int:
        """Return how many GPUs there are.

        Raises:
            DriverUnavailableError: the driver went away after the start.
        """
        try:
            return pynvml.nvmlDeviceGetCount()
        except NVMLError as error:
            raise unavailable(error.value) from error

    def identify(self, index: int) -> Outcome[Device]:
        """Return the GPU at an index, or why it does not say who it is."""
        return identity.identify(index)

    def open(self, gpu: Device) -> Session:
        """Return a session for a GPU that was identified."""
        return RealSession(
            gpu,
            self._cursors.of(gpu.uuid),
            self._cpu_nanoseconds,
            self._monotonic_nanoseconds,
        )

    def events(self, gpus: tuple[Device, ...]) -> Outcome[EventSource]:
        """Listen to these GPUs from now on."""
        return events.listen(gpus)


def _forget_library() -> None:
    """Let the next start load the library anew: one that fits the driver may be there by then.

    The binding keeps the first library that it loaded, and the loader any that is still open.
    """
    library, pynvml.nvmlLib = pynvml.nvmlLib, None
    pynvml._nvmlGetFunctionPointer_cache.clear()  # noqa: SLF001 - it has no call for that
    if library is not None:
        _ctypes.dlclose(library._handle)  # noqa: SLF001


def _stated(version: Callable[[], str]) -> str:
    """Return a version, or nothing where it is not stated; that is no reason not to start.

    The version of CUDA comes from libcuda, which containers without compute capability lack.
    """
    try:
        return _text(version)
    except NVMLError as error:
        if error.value in GONE:
            raise
        return ""


def _text(version: Callable[[], str]) -> str:
    try:
        return version()
    except UnicodeDecodeError:
        return ""


def _dotted(cuda: int) -> str:
    return f"{cuda // 1000}.{cuda % 1000 // 10}"
