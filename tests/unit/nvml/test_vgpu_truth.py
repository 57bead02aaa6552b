"""The waiting ratio that is published, against what the machines of a host really waited.

Bound: each entry of the log is as old as the last turn of its machine, some slices.
"""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exporter.measure.windows import Grid, Window
from exporter.nvml.simulated import SimulatedNvml
from simulator.clock import ManualClock
from simulator.fleet import Fleet
from slicewatch.catalog import CATALOG
from slicewatch.catalog.vgpu import VGPU_WAITS

WINDOW = 15
RATIO = CATALOG["gpu_vgpu_wait_ratio"]


def published(fleet):
    """Return the ratio after a window of ticks of a second."""
    nvml = SimulatedNvml(fleet.nodes[0])
    nvml.start()
    session = nvml.open(nvml.identify(0).value)
    grid = Grid(window_seconds=WINDOW, tick_seconds=1)
    window = Window(1, grid)
    for tick in range(WINDOW + 1):
        reading = session.read(VGPU_WAITS, *session.devices().value).value
        grid.advance(fleet.now)
        ratio = RATIO.value(reading)
        if ratio is not None:
            window.add(0, ratio, RATIO.weight(reading))
        if tick < WINDOW:
            fleet.advance_to(fleet.now + 1)
    nvml.stop()
    return float(window.means()[0])


waves = st.tuples(st.floats(0.05, 1), st.integers(3, 60))


@settings(deadline=None, max_examples=15)
@given(
    st.lists(waves, min_size=1, max_size=5),
    st.sampled_from(["best_effort", "equal_share", "fixed_share"]),
)
def test_it_is_the_part_of_their_working_time_in_which_they_waited(machines, policy):
    vgpus = "\n".join(
        f"          - {{vm: vm{n}, type: t, memory: 8GiB, "
        f"load: {{wave: {{low: 0.05, high: {high}, period: {period}s}}}}}}"
        for n, (high, period) in enumerate(machines)
    )
    fleet = Fleet.load(
        f"""
nodes:
  - name: n
    gpus:
      - model: L40S
        scheduler: {{policy: {policy}}}
        vgpus:
{vgpus}
""",
        clock=ManualClock(),
    )
    fleet.advance_to(100)
    begin = fleet.now
    said = published(fleet)
    uuid = fleet.nodes[0].gpus[0].uuid
    assert said == pytest.approx(
        fleet.truth.vgpu_wait_ratio(uuid, None, begin, fleet.now), abs=0.02
    )
