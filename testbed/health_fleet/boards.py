"""Boards that are well: what the exporter reads of a simulated H100, as it is on the wire."""

import uuid
from typing import Final

import msgspec

from cli.health.staging import Staged
from simulator import reading
from simulator.fleet import Fleet
from slicewatch.catalog import CATALOG
from slicewatch.catalog.power import ENERGY
from slicewatch.catalog.readings.power import Energy
from slicewatch.wire.evidence import Gpu, Reading, Value
from testbed.health_fleet.showing import value

WATTS: Final = 350.0

_INTERVALS: Final = {probe.name: probe.interval_seconds for probe in CATALOG.probes()}
_SCENARIO: Final = """
nodes:
  - name: node
    gpus:
      - {model: H100-80GB, count: 1}
"""


def identifier(*parts: object) -> str:
    """Return an identifier in the form that kernels and drivers have, the same for the same."""
    return str(uuid.uuid5(uuid.NAMESPACE_OID, "/".join(map(str, parts))))


def gpu(node: str, index: int, number: int = 0) -> Gpu:
    """Return the GPU at an index of a node, the so-manieth that stands there, without readings."""
    device = msgspec.structs.replace(
        _BOARD.device,
        uuid=f"GPU-{identifier(node, index, number)}",
        gpu=index,
        pci_bus_id=f"00000000:{0x11 + 0x10 * (index % 8):02X}:{index // 8:02X}.0",
    )
    return Gpu(device=device)


def at_rest(read_for_seconds: float, loaded_for_seconds: float) -> dict[str, Reading]:
    """Return the readings of a board that does nothing, each as old as its interval lets it be.

    Args:
        read_for_seconds: for how long the exporter has read it.
        loaded_for_seconds: for how long the driver has been loaded.
    """
    energy = Energy(int(loaded_for_seconds * WATTS * 1000))
    return {
        name: said if not isinstance(said, Value) else _aged(name, said, read_for_seconds)
        for name, said in _BOARD.readings.items()
    } | {ENERGY.name: value(energy)}


def _aged(name: str, said: Value, read_for_seconds: float) -> Value:
    interval = _INTERVALS[name] or 1.0
    return Value(reading=said.reading, age_seconds=max(0.0, read_for_seconds) % interval)


def _read() -> Gpu:
    fleet = Fleet(reading.parse(_SCENARIO))
    return Staged(fleet, fleet.nodes[0], 0.0).evidence(0.0).gpus[0]


# Read on import: simulated calls refuse to block an event loop, as real ones would.
_BOARD: Final = _read()
