"""PCIe and NVLink: lost lanes and links, errors on them, and links that are only at rest."""

import pytest

from health.checks.model import Action
from slicewatch.catalog.clocks import PERFORMANCE_STATE
from slicewatch.catalog.nvlink import ERROR_COUNTS, STATES
from slicewatch.catalog.pcie import LINK, REPLAY
from slicewatch.catalog.readings.clocks import PerformanceState
from slicewatch.catalog.readings.nvlink import NvlinkError, NvlinkErrors, Nvlinks
from slicewatch.catalog.readings.pcie import PcieLink, PcieReplays
from slicewatch.catalog.readings.state import Fabric
from slicewatch.catalog.readings.utilization import Utilization
from slicewatch.catalog.state import FABRIC
from slicewatch.catalog.utilization import UTILIZATION
from slicewatch.wire.evidence import Unsupported
from testbed.evidence import case, evidence, gpu
from tests.unit.health.checks.verdict import BY_ID, action, found, is_healthy, is_unknown, judged


def pcie(generation=4, *, top=4, own=4, width=16, most=16, state=0, percent=90, replays=None):
    readings = {
        LINK: PcieLink(generation, top, own, width, most),
        PERFORMANCE_STATE: PerformanceState(state),
        UTILIZATION: Utilization(samples=((1_000_000, percent),), since_us=0),
    }
    if replays is not None:
        readings[REPLAY] = PcieReplays(replays)
    return gpu(readings=readings)


class TestPcie:
    def test_missing_lanes_warn_loaded_or_not(self):
        assert found("pcie_width", case(pcie(width=8, state=8, percent=0))) == (
            Action.WARN, "8 of 16 PCIe lanes",
        )  # fmt: skip
        assert is_healthy("pcie_width", case(pcie()))
        assert is_healthy("pcie_width", case(pcie(width=8, most=8)))

    @pytest.mark.parametrize("width", [None, 0, 255])
    def test_a_width_that_is_none_is_not_known(self, width):
        assert is_unknown("pcie_width", case(pcie(width=width)))

    def test_a_link_that_is_slow_while_idle_is_no_fault(self):
        """Links are slow at rest (nvtop #6, open-gpu-kernel-modules #731, #1010, rtx6kpro PR #88)."""
        idle = pcie(1, state=8, percent=0)
        assert is_unknown("pcie_generation", case(*9 * [idle]))

    def test_one_that_stays_slow_under_load_warns(self):
        loaded = pcie(1)
        assert is_unknown("pcie_generation", case(loaded, loaded))
        assert found("pcie_generation", case(*3 * [loaded])) == (
            Action.WARN, "PCIe generation 1 of 4 under load",
        )  # fmt: skip
        assert action("pcie_generation", case(*3 * [pcie(1, state=2)])) is Action.WARN

    def test_load_of_the_moment_is_not_enough(self):
        idle, loaded = pcie(1, state=8, percent=0), pcie(1)
        assert is_unknown("pcie_generation", case(loaded, idle, loaded, loaded))
        assert is_unknown("pcie_generation", case(loaded, pcie(4), loaded))

    def test_a_slot_that_has_less_than_the_board_is_no_fault(self):
        assert is_healthy("pcie_generation", case(*3 * [pcie(3, top=3, own=5)]))

    def test_in_mig_mode_load_is_not_told_and_nothing_follows(self):
        readings = {
            LINK: PcieLink(1, 4, 4, 16, 16),
            PERFORMANCE_STATE: PerformanceState(0),
            UTILIZATION: Unsupported(reason="mig_enabled"),
        }
        assert is_unknown("pcie_generation", case(*3 * [gpu(mig=True, readings=readings)]))

    @pytest.mark.parametrize(
        ("generation", "width", "allowed"), [(3, 16, 8), (4, 16, 16), (5, 16, 31), (1, 8, 2)]
    )
    def test_more_replays_a_minute_than_lanes_have_warn(self, generation, width, allowed):
        def seen(rise):
            counts = (70, 70 + rise)
            return case(
                *(pcie(generation, top=generation, width=width, replays=n) for n in counts)
            )

        assert is_healthy("pcie_replays", seen(allowed))
        assert action("pcie_replays", seen(allowed + 1)) is Action.WARN

    def test_replays_of_another_start_of_the_driver_are_not_compared(self):
        before = evidence([pcie(replays=0)], starts=1)
        after = evidence([pcie(replays=9000)], starts=2)
        assert is_unknown("pcie_replays", case(before, after))
        assert is_unknown("pcie_replays", case(pcie(replays=9000), pcie(replays=0)))


def links(*states, **said):
    return evidence([gpu(readings={STATES: Nvlinks(states=states)})], **said)


ALL_UP, ALL_DOWN = (1,) * 18, (0,) * 18


class TestNvlinkDown:
    def test_links_that_are_lost_are_a_fault(self):
        """A board without its links passed every test (DCGM #198)."""
        seen = case(links(*ALL_DOWN), baseline={"links": 18})
        assert action("nvlink_down", seen) is Action.CORDON
        assert BY_ID["nvlink_down"].raise_seconds == 300
        one = case(links(0, *ALL_UP[1:]), baseline={"links": 18})
        assert found("nvlink_down", one) == found("nvlink_down", seen)

    def test_links_that_train_after_a_boot_are_not(self):
        """All 214 of 288 nodes that reported links down were well (NVSentinel #1701, #1715)."""
        assert is_unknown("nvlink_down", case(links(*ALL_DOWN, uptime_seconds=60)))
        later = links(*ALL_DOWN, uptime_seconds=599)
        assert is_unknown("nvlink_down", case(later, baseline={"links": 18}))
        assert is_unknown("nvlink_down", case(links(*ALL_DOWN, driver_seconds=30)))

    @pytest.mark.parametrize(
        "states", [(), ALL_DOWN, (1, 1, 1, 0, 0, 0), ALL_UP], ids=["none", "idle", "bridge", "all"]
    )
    def test_whatever_a_board_has_is_well(self, states):
        """Cards without a bridge were called ill (NVSentinel PR #1481)."""
        said = judged("nvlink_down", case(links(*states)))
        assert said.baseline == {"links": sum(states)}

    def test_a_gpu_in_mig_mode_has_lost_nothing(self):
        masked = gpu(mig=True, readings={STATES: Unsupported(reason="mig_enabled")})
        assert is_unknown("nvlink_down", case(masked, baseline={"links": 18}))

    def test_a_link_that_does_not_tell_is_not_down(self):
        seen = case(links(None, *ALL_UP[1:]), baseline={"links": 18})
        assert is_unknown("nvlink_down", seen)

    def test_the_baseline_grows_and_never_shrinks(self):
        grown = judged("nvlink_down", case(links(*ALL_UP), baseline={"links": 12}))
        assert grown.baseline == {"links": 18}
        lost = judged("nvlink_down", case(links(*ALL_DOWN), baseline={"links": 18}))
        assert lost.baseline == {"links": 18}


def errors(**counts):
    """Return a GPU of two links, the second of which has these errors."""
    kinds = tuple(NvlinkError)
    sound, bad = [0] * len(kinds), [counts.get(kind.value, 0) for kind in kinds]
    return gpu(readings={ERROR_COUNTS: NvlinkErrors(links=(tuple(sound), tuple(bad)))})


class TestNvlinkErrors:
    @pytest.mark.parametrize("kind", ["crc", "crc_flit", "crc_data"])
    def test_many_crc_errors_a_second_warn(self, kind):
        noisy = case(errors(**{kind: 10}), errors(**{kind: 10 + 6001}))
        assert found("nvlink_errors", noisy) == (Action.WARN, "errors on NVLink 1")
        assert is_healthy("nvlink_errors", case(errors(**{kind: 10}), errors(**{kind: 6010})))

    def test_a_failed_recovery_is_remembered_as_long_as_the_polls_are(self):
        seen = [errors(), errors(recovery_failed=1), *3 * [errors(recovery_failed=1)]]
        assert action("nvlink_errors", case(*seen)) is Action.WARN
        assert is_healthy("nvlink_errors", case(*seen[1:]))

    def test_one_reading_makes_no_rate_and_a_reset_no_error(self):
        assert is_unknown("nvlink_errors", case(errors(crc=10**6)))
        assert is_healthy("nvlink_errors", case(errors(crc=10**6), errors()))

    def test_links_that_count_nothing_say_nothing(self):
        silent = gpu(readings={ERROR_COUNTS: NvlinkErrors(links=((None,) * 12,))})
        assert is_unknown("nvlink_errors", case(silent, silent))

    def test_a_reading_of_another_length_is_taken_for_what_it_has(self):
        short = gpu(readings={ERROR_COUNTS: NvlinkErrors(links=((0,), ()))})
        assert is_healthy("nvlink_errors", case(short, short))


class TestFabric:
    def seen(self, state, *, status=0, mask=0, summary=None, **said):
        fabric = Fabric(state, status, mask, summary)
        return case(evidence([gpu(readings={FABRIC: fabric})], **said))

    def test_a_gpu_that_has_joined_is_well_without_imex(self):
        """IMEX does not run on idle nodes (aicr #2641, NVSentinel #1471)."""
        assert is_healthy("fabric", self.seen(3, mask=0b10_10_10_10))
        assert is_healthy("fabric", self.seen(3, mask=0b0001_10_10_10_10))

    def test_a_fabric_that_says_nothing_is_unknown(self):
        assert is_unknown("fabric", self.seen(3, mask=0))

    def test_a_gpu_that_joins_no_fabric_is_not_ill(self):
        assert is_unknown("fabric", self.seen(1))

    def test_joining_takes_its_time_after_a_boot_and_not_for_ever(self):
        assert is_unknown("fabric", self.seen(2, uptime_seconds=300))
        assert action("fabric", self.seen(2)) is Action.WARN

    def test_faults_are_named(self):
        said = judged("fabric", self.seen(3, mask=0b10_01_10_01))
        assert said.message == "the fabric says: degraded bandwidth, route unhealthy"
        assert said.reason == "FabricFault"
        refused = judged("fabric", self.seen(3, status=999))
        assert refused.message == "the GPU could not join the fabric: NVML's code 999"
