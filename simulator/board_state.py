"""How a simulated board is set up: modes, generation, InfoROM, its place in the NVLink fabric.

Most of it never changes and is made up, in the form that boards have it.
"""

from typing import Final, TypeVar

import msgspec

from simulator import garbage
from simulator.clock import Clock
from simulator.faults import Story
from simulator.scenario import FabricTrouble, Fault, InforomCorrupted
from simulator.stage import Stage
from simulator.timeline import GpuTimeline
from slicewatch.catalog.readings.state import (
    ARCHITECTURES,
    CONFIGURATION_SHIFT,
    FABRIC_STATES,
    FAULT_SHIFTS,
    HEALTHY,
    UNHEALTHY,
    ComputeMode,
    Fabric,
    FabricFault,
    FabricState,
    Generation,
    Inforom,
    InforomCheck,
    Modes,
)
from slicewatch.hardware import GpuModel
from slicewatch.hardware.features import CUDA_CAPABILITIES, comes_with_ecc, joins_fabric

R = TypeVar("R", bound=msgspec.Struct)

# NVML_GPU_FABRIC_HEALTH_MASK_*: what is wrong, what is not, and a configuration that is not right.
_WRONG, _RIGHT, _NO_PARTITION = 1, 2, 4
_ARCHITECTURE_NUMBERS: Final = {name: number for number, name in ARCHITECTURES.items()}
_STATE_NUMBERS: Final = {state: number for number, state in FABRIC_STATES.items()}


class BoardState:
    """What one GPU tells of its set-up. Computed when read, on any thread."""

    def __init__(
        self, model: GpuModel, story: Story, timeline: GpuTimeline, *, clock: Clock
    ) -> None:
        self._model = model
        self._story = story
        self._timeline = timeline
        self._clock = clock

    def modes(self) -> Modes:
        """Return what is switched on; nobody changes ECC or persistence mode."""
        stage = self._stage()
        current = int(stage.mig_enabled) if self._model.supports_mig else None
        pending = int(stage.mig_enabled != stage.mig_change_pending)
        ecc = int(comes_with_ecc(self._model))
        return self._shown(
            Modes(
                persistence=1,
                mig_current=current,
                mig_pending=None if current is None else pending,
                ecc_current=ecc,
                ecc_pending=ecc,
            )
        )

    def compute_mode(self) -> ComputeMode:
        """Return that any number of processes may use it, as Kubernetes leaves it."""
        return self._shown(ComputeMode(0))

    def generation(self) -> Generation:
        """Return what the model is."""
        architecture = self._model.architecture
        number = _ARCHITECTURE_NUMBERS[architecture]
        return self._shown(Generation(number, *CUDA_CAPABILITIES[architecture]))

    def inforom(self) -> Inforom:
        """Return the versions in the InfoROM; without an ECC object where ECC is off."""
        if self._stage().garbage:
            return Inforom(None, None, None, None)
        ecc = "7.16" if comes_with_ecc(self._model) else None
        return Inforom(image="SIM0.0200.00.01", oem="2.1", ecc=ecc, power=None)

    def inforom_check(self) -> InforomCheck | None:
        """Return whether the InfoROM is sound; None while nothing that is said makes sense."""
        if self._stage().garbage:
            return None
        corrupted = any(isinstance(fault, InforomCorrupted) for fault in self._faults())
        return InforomCheck(valid=not corrupted)

    def fabric(self) -> Fabric | None:
        """Return the place in the fabric; None for a model that joins none."""
        if not joins_fabric(self._model):
            return None
        troubles = [fault for fault in self._faults() if isinstance(fault, FabricTrouble)]
        state = troubles[-1].state if troubles else FabricState.COMPLETED
        wrong = {trouble.fault for trouble in troubles if trouble.fault is not None}
        return self._shown(
            Fabric(
                state=_STATE_NUMBERS[state],
                status=0,
                health_mask=_mask(wrong),
                health_summary=UNHEALTHY if wrong else HEALTHY,
            )
        )

    def _faults(self) -> list[Fault]:
        with self._timeline.changed:
            return self._story.current(self._clock.now(), self._timeline.index)

    def _stage(self) -> Stage:
        return self._timeline.stage(self._clock.now())

    def _shown(self, reading: R) -> R:
        return garbage.instead_of(reading) if self._stage().garbage else reading


def _mask(wrong: set[FabricFault]) -> int:
    configuration = _NO_PARTITION if FabricFault.INCORRECT_CONFIGURATION in wrong else 1
    bits = ((_WRONG if f in wrong else _RIGHT) << at for f, at in FAULT_SHIFTS.items())
    return sum(bits) | configuration << CONFIGURATION_SHIFT
