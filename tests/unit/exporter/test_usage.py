"""One device: from the entries of its driver to its tenants."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.measure.usage import MPS, Usage, key_of
from exporter.nvml.protocol import Failed, Lost, Unsupported, Value
from exporter.tenants.owners import HOST, Fault, Owner
from slicewatch.catalog.readings.processes import (
    GpuProcess,
    Processes,
    ProcessKind,
    ProcessShare,
    ProcessUtilization,
)
from slicewatch.wire.layout import Tenant
from tests.unit.exporter.people import People

NOW_US = 1_800_000_000_000_000
GIB = 2**30
WINDOW, SHORT = 60, 15
A, B, C = (Owner(namespace="ns", pod=pod, container="main", uid=pod * 4) for pod in "abc")
SIDECAR = Owner(namespace="ns", pod="a", container="sidecar", uid="aaaa")
SERVER = 50


class Device:
    """A usage that is told one second after the other."""

    def __init__(self, people, allocated=()):
        self.people = people
        self.holders = [
            Tenant(device="GPU-0", namespace=o.namespace, pod=o.pod, container=o.container)
            for o in allocated
        ]
        self.usage = Usage(window_seconds=WINDOW, short_window_seconds=SHORT)
        self.at = 0

    def tick(self, percents=(), *, seconds=1, outcome=None):
        """Let a time pass in which each pid had a share of so many percent."""
        self.at += seconds
        self.people.refresh()
        until = NOW_US + 1_000_000 * self.at
        shares = tuple(ProcessShare(pid, until, p) for pid, p in dict(percents).items())
        reading = Value(ProcessUtilization(shares, until - 1_000_000 * seconds, until))
        self.usage.take_shares(outcome or reading, self.holders, self.people, self.at)

    def list(self, *processes, outcome=None):
        self.usage.take_list(outcome or Value(Processes(processes)))

    def of(self, owner):
        return self.usage.state.tenants.get(key_of(owner))

    def ratios(self):
        tenants = self.usage.state.tenants
        return {key: tenant.busy_ratio for key, tenant in tenants.items()}

    def owners(self):
        return self.usage.owners(self.people)


def compute(pid, used=GIB):
    return GpuProcess(pid, ProcessKind.COMPUTE, used)


def client(pid, used=GIB):
    return GpuProcess(pid, ProcessKind.MPS, used)


def ticks(device, percents, count=SHORT):
    for _ in range(count):
        device.tick(percents)


def test_each_tenant_has_its_own_share_and_not_the_devices():
    """dcgm-exporter #587: three processes of 24, 30 and 17 percent, where every pod got 71."""
    device = Device(People({1: A, 2: B, 3: C}), (A, B, C))
    ticks(device, {1: 24, 2: 30, 3: 17})
    assert device.ratios() == {
        key_of(A): pytest.approx(0.24), key_of(B): pytest.approx(0.30),
        key_of(C): pytest.approx(0.17),
    }  # fmt: skip
    assert device.of(A).busy_seconds_total == pytest.approx(0.24 * SHORT)
    assert device.of(A).foreign_busy_seconds_total == pytest.approx(0.47 * SHORT)


def test_the_containers_of_a_pod_are_tenants_of_their_own():
    """dcgm-exporter keys by pod and gives each container the pod's total."""
    device = Device(People({1: A, 2: SIDECAR}), (A, SIDECAR))
    ticks(device, {1: 40, 2: 10})
    assert device.ratios() == {
        key_of(A): pytest.approx(0.4), key_of(SIDECAR): pytest.approx(0.1)
    }  # fmt: skip


def test_the_processes_of_a_container_are_one_tenant():
    device = Device(People({1: A, 2: A, 3: B}), (A, B))
    ticks(device, {1: 20, 2: 15, 3: 5})
    assert device.ratios()[key_of(A)] == pytest.approx(0.35)


def test_processes_of_the_host_are_one_tenant_without_names():
    """dcgm-exporter #144: what runs in another cgroup is another's."""
    device = Device(People({1: A, 7: HOST, 8: HOST}), (A,))
    ticks(device, {1: 20, 7: 30, 8: 10})
    assert device.ratios()[key_of(HOST)] == pytest.approx(0.4)


def test_who_holds_the_device_and_does_nothing_has_zero_and_is_not_missing():
    """HAMi #1794, #281: an idle container is there, with nothing used."""
    device = Device(People({1: A}), (A, B))
    ticks(device, {1: 50})
    assert device.of(B).busy_ratio == 0.0
    assert device.of(B).busy_seconds_total == 0.0
    assert device.of(B).foreign_busy_seconds_total == pytest.approx(0.5 * SHORT)


def test_an_idle_device_is_known_to_be_idle():
    """NVML says NOT_FOUND there: a reading without shares, which covers its time."""
    device = Device(People({}), (A,))
    ticks(device, {}, WINDOW)
    assert device.ratios() == {key_of(A): 0.0}
    assert device.usage.state.covered_seconds == WINDOW
    assert device.usage.state.contention_ratio == 0.0


@pytest.mark.parametrize("outcome", [Failed("UNKNOWN"), Lost("gpu_is_lost")])
def test_a_read_that_failed_is_unknown_time_and_not_idle_time(outcome):
    device = Device(People({1: A}), (A,))
    ticks(device, {1: 60}, 10)
    total = device.of(A).busy_seconds_total
    for _ in range(5):
        device.tick(outcome=outcome)
    assert device.of(A).busy_ratio == pytest.approx(0.6)
    assert device.of(A).busy_seconds_total == total
    for _ in range(5):
        device.tick(outcome=outcome)
    # Too little of the window is known by now.
    assert device.of(A).busy_ratio is None
    assert device.of(A).busy_seconds_total == total


def test_nothing_is_said_before_anything_is_known():
    device = Device(People({1: A}), (A,))
    until = NOW_US
    first = Value(ProcessUtilization((ProcessShare(1, until, 90),), None, until))
    device.tick(outcome=first)
    assert device.of(A) is None
    assert device.usage.state.contended_seconds_total is None


def test_a_share_counts_for_the_span_that_it_was_read_over():
    device = Device(People({1: A}), (A,))
    for seconds in (1, 4, 2, 8):
        device.tick({1: 50}, seconds=seconds)
    assert device.of(A).busy_seconds_total == pytest.approx(7.5)


def test_time_that_the_drivers_ring_lost_is_unknown():
    device = Device(People({1: A}), (A,))
    device.tick({1: 50})
    device.tick({1: 50}, seconds=11)
    assert device.of(A).busy_seconds_total == pytest.approx(0.5)
    assert device.usage.state.covered_seconds_total == 1


def test_work_of_a_process_that_nobody_knows_is_nobodys():
    device = Device(People({1: A}), (A,))
    ticks(device, {1: 40, 99: 2}, WINDOW)
    assert device.ratios() == {key_of(A): pytest.approx(0.4)}
    assert device.usage.state.unattributed_busy_ratio == pytest.approx(0.02)


def test_with_much_work_of_unknown_processes_no_share_is_known():
    device = Device(People({1: A}), (A,))
    ticks(device, {1: 40, 99: 20}, WINDOW)
    assert device.of(A).busy_ratio is None
    assert device.of(A).contention_ratio is None
    assert device.of(A).busy_seconds_total == pytest.approx(0.4 * WINDOW)


def test_a_process_that_ended_leaves_its_total_and_then_its_tenant():
    """dcgm-exporter #140, #16: nothing is reported of a pod that is gone."""
    device = Device(People({1: A, 2: B}), (A,))
    device.list(compute(1), compute(2))
    ticks(device, {1: 30, 2: 30})
    assert set(device.owners()) == {A, B}
    del device.people.owners[2]
    device.list(compute(1))
    ticks(device, {1: 30})
    assert set(device.owners()) == {A}
    assert device.of(B).busy_ratio == 0.0
    ticks(device, {1: 30}, WINDOW)
    assert device.of(B) is None


def test_clients_of_mps_are_tenants_and_their_server_is_not():
    """dcgm-exporter #474, #388, #478: only the MPS daemon's pod was seen."""
    device = Device(People({1: A, 2: B, SERVER: C}, servers={SERVER}), (A, B))
    device.list(client(1), client(2), compute(SERVER))
    ticks(device, {1: 30, 2: 20})
    assert device.owners() == {A: [client(1)], B: [client(2)]}
    assert device.usage.reason == ""
    assert device.ratios()[key_of(B)] == pytest.approx(0.2)


def test_a_server_of_mps_without_clients_is_nobodys_process():
    device = Device(People({SERVER: C}, servers={SERVER}))
    device.list(compute(SERVER))
    ticks(device, {})
    assert device.owners() == {}


def test_work_that_is_put_down_to_the_server_of_mps_is_unknown():
    """dcgm-exporter #474: identical values for all are worse than none."""
    device = Device(People({1: A, 2: B, SERVER: C}, servers={SERVER}), (A, B))
    device.list(client(1), client(2), compute(SERVER))
    ticks(device, {SERVER: 80})
    assert device.usage.reason == MPS
    assert device.usage.state.tenants == {}
    assert set(device.owners()) == {A, B}


def test_a_pause_in_the_work_through_a_server_does_not_make_shares_known():
    """Else the idle moments alone would be known, and a busy tenant would have a share of 0."""
    device = Device(People({1: A, SERVER: C}, servers={SERVER}), (A,))
    device.list(client(1), compute(SERVER))
    for _ in range(WINDOW):
        device.tick({SERVER: 80})
        device.tick({})
        device.tick({})
        assert device.usage.reason == MPS
    assert device.usage.state.covered_seconds == 0


def test_a_failure_changes_nothing_about_why_shares_are_unknown():
    device = Device(People({1: A, SERVER: C}, servers={SERVER}), (A,))
    device.list(client(1), compute(SERVER))
    device.tick({SERVER: 80})
    device.tick(outcome=Failed("UNKNOWN"))
    assert device.usage.reason == MPS
    device.list(outcome=Failed("UNKNOWN"))
    device.tick({})
    assert device.usage.reason == MPS


def test_shares_are_known_again_once_mps_is_not_in_use():
    device = Device(People({1: A, SERVER: C}, servers={SERVER}), (A,))
    device.list(client(1), compute(SERVER))
    device.tick({SERVER: 80})
    device.list(compute(1))
    ticks(device, {1: 40})
    assert device.usage.reason == ""
    assert device.ratios()[key_of(A)] == pytest.approx(0.4)


def test_a_client_that_began_after_the_last_list_is_a_client_and_no_server():
    device = Device(People({1: A, 2: B, SERVER: C}, servers={SERVER}), (A,))
    device.list(client(1), compute(SERVER))
    ticks(device, {1: 30, 2: 20})
    assert device.usage.reason == ""
    assert device.ratios()[key_of(B)] == pytest.approx(0.2)


@pytest.mark.parametrize("reason", ["mig_enabled", "device", "driver", "permission"])
def test_where_the_driver_tells_no_shares_its_reason_is_given(reason):
    device = Device(People({1: A}), (A,))
    ticks(device, {1: 40})
    device.tick(outcome=Unsupported(reason))
    assert device.usage.reason == reason
    device.tick({1: 40})
    assert device.usage.reason == ""


def test_with_a_fault_of_the_node_nothing_is_anybodys():
    device = Device(People({1: A}, fault=Fault.PID_NAMESPACE), (A,))
    device.list(compute(1))
    ticks(device, {1: 40})
    assert device.usage.reason == "pid_namespace"
    assert device.owners() == {}
    assert device.usage.state.covered_seconds_total == 0


def test_a_process_at_work_that_is_not_listed_yet_is_there():
    device = Device(People({1: A, 2: B}))
    device.list(compute(1))
    device.tick({1: 10, 2: 10})
    assert device.owners() == {A: [compute(1)], B: []}
    # The next list says what it holds, or that it has gone.
    device.list(compute(1))
    assert device.owners() == {A: [compute(1)]}


def test_a_list_that_was_not_asked_for_leaves_the_last_one():
    device = Device(People({1: A}))
    device.list(compute(1))
    device.usage.take_list(None)
    assert device.usage.is_listed
    assert device.owners() == {A: [compute(1)]}
    device.list(outcome=Failed("UNKNOWN"))
    assert not device.usage.is_listed
    assert device.owners() == {}


def test_who_has_a_context_is_there_while_it_is_idle():
    """Else what others did meanwhile would not count as time in which they were in its way."""
    device = Device(People({1: A, 7: HOST}), (A,))
    device.list(compute(1), compute(7))
    ticks(device, {1: 50})
    assert device.of(HOST).busy_ratio == 0.0
    assert device.of(HOST).foreign_busy_seconds_total == pytest.approx(0.5 * SHORT)
    ticks(device, {1: 50}, 2 * WINDOW)
    assert device.of(HOST) is not None


@given(
    st.lists(
        st.dictionaries(st.sampled_from([1, 2, 3, 4, 99]), st.integers(0, 100), max_size=5),
        min_size=1,
        max_size=80,
    )
)
def test_tenants_together_are_never_busier_than_the_time_that_is_known(seconds):
    device = Device(People({1: A, 2: B, 3: A, 4: HOST}), (A, C))
    for percents in seconds:
        device.tick(percents)
        state = device.usage.state
        totals = [tenant.busy_seconds_total for tenant in state.tenants.values()]
        ratios = [tenant.busy_ratio or 0 for tenant in state.tenants.values()]
        assert sum(totals) <= state.covered_seconds_total + 1e-6
        assert sum(ratios) <= 1 + 1e-9
        assert (state.contention_ratio or 0) <= 1
