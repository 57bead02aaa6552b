"""GPM counters: means between two samples, against the truth, per GPU and per MIG device."""

import math
import sys
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simulator.errors import NotSupportedError
from simulator.fleet import Fleet
from simulator.gpm import BYTES, NOT_UNDER_MIG, NVLINK, GpmQuantity
from simulator.scenario import Garbage, Hang, Lost, MigLayout

WHOLE = """
nodes: [{name: n, gpus: [{model: H100-80GB}, {model: A100-80GB}]}]
workloads:
  - name: w
    load: {wave: {low: 0.1, high: 0.9, period: 97s}}
    mix: {sm: 0.6, occupancy: 0.2, tensor: 0.5, dram: 0.4, pcie_rx: 2GB, nvlink_tx: 10GB}
    pods: [{name: p, devices: [{node: n, gpu: 0}]}]
"""

SLICED = """
nodes: [{name: n, gpus: [{model: H100-80GB, mig: [3g.40gb, 1g.10gb]}]}]
workloads:
  - {name: a, load: 0.5, mix: {sm: 0.5, pcie_rx: 1GB}, pods: [
      {name: pa, devices: [{node: n, gpu: 0, mig: 0}]}]}
  - {name: b, load: 0.8, mix: {sm: 1.0, pcie_rx: 1GB}, pods: [
      {name: pb, devices: [{node: n, gpu: 0, mig: 1}]}]}
"""


def mean_between(fleet, begin, end, device=None):
    gpu = fleet.node("n").gpus[0]
    fleet.advance_to(begin)
    earlier = gpu.gpm_sample(device)
    fleet.advance_to(end)
    return gpu.gpm_sample(device).mean_since(earlier)


@settings(deadline=None, max_examples=20)
@given(st.floats(0, 5000), st.floats(0.1, 700))
def test_the_mean_between_two_samples_is_the_truth(begin, length):
    fleet = Fleet.load(WHOLE)
    uuid = fleet.node("n").gpus[0].uuid
    for quantity, mean in mean_between(fleet, begin, begin + length).items():
        true = fleet.truth.gpm_mean(uuid, quantity, begin, begin + length)
        assert mean == pytest.approx(true, rel=1e-4, abs=1e-5)


def test_graphics_activity_is_the_load_and_the_rest_follows_the_mix():
    fleet = Fleet.load(WHOLE)
    uuid = fleet.node("n").gpus[0].uuid
    load = fleet.truth.mean_utilization(uuid, 10, 60)
    mean = mean_between(fleet, 10, 60)
    assert mean[GpmQuantity.GRAPHICS] == pytest.approx(load)
    assert mean[GpmQuantity.SM] == pytest.approx(0.6 * load)
    assert mean[GpmQuantity.TENSOR] == pytest.approx(0.5 * load)
    assert mean[GpmQuantity.PCIE_RX] == pytest.approx(2e9 * load)
    assert mean[GpmQuantity.NVLINK_TX] == pytest.approx(1e10 * load)
    assert set(mean) == set(GpmQuantity)


def test_a_mig_device_is_measured_by_itself():
    """dcgm-exporter #216 and #3: no zeros for MIG instances that work."""
    fleet = Fleet.load(SLICED)
    first, second = fleet.node("n").gpus[0].mig_devices
    means = [mean_between(Fleet.load(SLICED), 0, 10, device) for device in (first, second)]
    assert [mean[GpmQuantity.GRAPHICS] for mean in means] == pytest.approx([0.5, 0.8])
    assert [mean[GpmQuantity.SM] for mean in means] == pytest.approx([0.25, 0.8])


def test_a_gpu_under_mig_is_the_sum_of_its_devices_by_their_sms():
    fleet = Fleet.load(SLICED)
    gpu = fleet.node("n").gpus[0]
    first, second = gpu.mig_devices
    whole = {one: fleet.truth.gpm_mean(gpu.uuid, one, 0, 10) for one in GpmQuantity}
    assert whole["graphics"] == pytest.approx(fleet.truth.mean_utilization(gpu.uuid, 0, 10))
    assert whole["sm"] == pytest.approx((60 * 0.25 + 16 * 0.8) / 132)
    parts = [fleet.truth.gpm_mean(device.uuid, "pcie_rx", 0, 10) for device in (first, second)]
    assert whole["pcie_rx"] == pytest.approx(sum(parts))
    assert parts[0] == pytest.approx(0.5e9 * 60 / 132)


def test_nvlink_and_media_engines_are_not_counted_under_mig():
    """dcgm-exporter #726, #675: what hardware cannot tell is left out, never 0."""
    fleet = Fleet.load(SLICED)
    gpu = fleet.node("n").gpus[0]
    assert NVLINK < BYTES
    assert NVLINK < NOT_UNDER_MIG
    for device in (None, gpu.mig_devices[0]):
        assert set(gpu.gpm_sample(device).totals) == set(GpmQuantity) - NOT_UNDER_MIG


def test_before_hopper_there_is_no_gpm():
    fleet = Fleet.load(WHOLE)
    with pytest.raises(NotSupportedError, match="A100-80GB has no GPM"):
        fleet.node("n").gpus[1].gpm_sample()


def test_a_destroyed_device_is_not_measured():
    fleet = Fleet.load(SLICED)
    gpu = fleet.node("n").gpus[0]
    gone = gpu.mig_devices[0]
    fleet.inject(MigLayout(node="n", gpu=0, mig=("7g.80gb",)))
    with pytest.raises(NotSupportedError, match="does not exist now"):
        gpu.gpm_sample(gone)


def test_a_load_that_a_test_sets_is_measured_too():
    fleet = Fleet.load("nodes: [{name: n, gpus: [{model: B200}]}]")
    fleet.node("n").gpus[0].set_load(0.5)
    mean = mean_between(fleet, 0, 20)
    assert mean[GpmQuantity.GRAPHICS] == pytest.approx(0.5)
    assert 0 < mean[GpmQuantity.SM] < 0.5


def test_counters_never_fall_whatever_happens():
    fleet = Fleet.load(WHOLE)
    gpu = fleet.node("n").gpus[0]
    earlier = gpu.gpm_sample()
    for at, change in ((100, Lost), (650, Hang), (1300, None), (1900, Lost)):
        fleet.advance_to(at)
        if change is None:
            gpu.set_load(0.3)
        else:
            fleet.inject(change(node="n", gpu=0, lasts=30))
        fleet.advance_to(at + 400)
        later = gpu.gpm_sample()
        assert all(0 <= mean < math.inf for mean in later.mean_since(earlier).values())
        true = fleet.truth.gpm_mean(gpu.uuid, "sm", 0, at + 400)
        assert later.totals[GpmQuantity.SM] == pytest.approx(true * (at + 400))
        earlier = later


def test_counters_are_no_numbers_while_readings_are_nonsense():
    fleet = Fleet.load(WHOLE)
    fleet.inject(Garbage(node="n", gpu=0))
    mean = mean_between(fleet, 1, 2)
    assert all(math.isnan(value) for value in mean.values())


def test_a_mean_needs_two_moments_and_a_quantity_that_exists():
    fleet = Fleet.load(WHOLE)
    gpu = fleet.node("n").gpus[0]
    with pytest.raises(ValueError, match="earlier sample"):
        gpu.gpm_sample().mean_since(gpu.gpm_sample())
    with pytest.raises(ValueError, match="'tensors'"):
        fleet.truth.gpm_mean(gpu.uuid, "tensors", 0, 1)
    with pytest.raises(ValueError, match="there is no time between"):
        fleet.truth.gpm_mean(gpu.uuid, "sm", 1, 1)


SHARED = """
nodes:
  - name: n
    gpus:
      - {model: H100-80GB, mig: [3g.40gb, 1g.10gb], sharing: {mode: time_slicing, replicas: 2}}
      - {model: H100-80GB, sharing: {mode: time_slicing, replicas: 2}}
workloads:
  - name: bursts
    load: {steps: [{at: 3s, level: 1.0}, {at: 31s, level: 0.0}], repeat: 230s}
    mix: {tensor: 0.7, pcie_rx: 3GB}
    pods: [
      {name: a, devices: [{node: n, gpu: 0, mig: 0, replica: 0}]},
      {name: b, until: 650s, devices: [{node: n, gpu: 1, replica: 0}]}]
  - name: waves
    load: {wave: {low: 0, high: 0.9, period: 61s}}
    mix: {tensor: 0.2}
    pods: [
      {name: c, from: 40s, devices: [{node: n, gpu: 0, mig: 0, replica: 1}]},
      {name: d, devices: [{node: n, gpu: 1, replica: 1}]}]
"""


def all_totals(fleet, at):
    return [
        gpu.gpm.totals(at, device)
        for gpu in fleet.node("n").gpus
        for device in (None, *gpu.timeline.stage(at).devices)
    ]


@settings(deadline=None, max_examples=30)
@given(st.lists(st.floats(0, 2000) | st.sampled_from([600.0, 1200.0, 1800.0]), min_size=2))
def test_counters_never_fall_by_a_single_bit(times):
    """Idle stretches and checkpoints included: a mean below 0 would be rejected as impossible."""
    fleet = Fleet.load(SHARED)
    seen = [all_totals(fleet, at) for at in sorted(times)]
    for earlier, later in pairwise(seen):
        for before, after in zip(earlier, later, strict=True):
            assert all(before[one] <= after[one] for one in before)


@settings(deadline=None, max_examples=30)
@given(st.lists(st.floats(0, 2000), min_size=1, max_size=6), st.floats(0, 2000))
def test_the_past_of_the_counters_reads_the_same_to_the_last_bit(times, changed_at):
    fleet = Fleet.load(SHARED)
    past = sorted(at for at in times if at <= changed_at)
    fleet.advance_to(changed_at)
    before = [all_totals(fleet, at) for at in past]
    gpu = fleet.node("n").gpus[1]
    gpu.set_load(0.4)
    all_totals(fleet, changed_at + 1000)
    assert [all_totals(fleet, at) for at in reversed(past)] == before[::-1]
    assert [all_totals(Fleet.load(SHARED), at) for at in past] == before


@settings(deadline=None, max_examples=20)
@given(st.floats(0, 1500), st.floats(0.1, 700))
def test_tenants_of_one_device_count_each_by_its_own_mix(begin, length):
    fleet = Fleet.load(SHARED)
    gpu = fleet.node("n").gpus[0]
    device, end = gpu.mig_devices[0], begin + length
    got = {
        tenancy.owner.pod: float(seconds[-1]) / length
        for tenancy, seconds in gpu.timeline.tenant_seconds(device.uuid, (begin, end)).items()
    }
    mean = mean_between(fleet, begin, end, device)
    tensor = 0.7 * got["a"] + 0.2 * got.get("c", 0)
    assert mean[GpmQuantity.TENSOR] == pytest.approx(tensor, rel=1e-4, abs=1e-5)
    bytes_per_second = (3e9 * got["a"] + 1.2e9 * got.get("c", 0)) * 60 / 132
    assert mean[GpmQuantity.PCIE_RX] == pytest.approx(bytes_per_second, rel=1e-4, abs=1e4)


def test_counters_that_were_foretold_follow_a_load_that_a_test_sets_meanwhile():
    fleet = Fleet.load(SHARED)
    gpu = fleet.node("n").gpus[1]
    foretold = gpu.gpm.total(gpu.uuid, GpmQuantity.GRAPHICS, 3000.0)
    fleet.advance_to(700)
    until_now = gpu.gpm.total(gpu.uuid, GpmQuantity.GRAPHICS, 700.0)
    gpu.set_load(0.25)
    came = gpu.gpm.total(gpu.uuid, GpmQuantity.GRAPHICS, 3000.0)
    assert came == pytest.approx(until_now + 0.25 * 2300)
    assert came != pytest.approx(foretold, rel=0.01)


def calls_of(work):
    """Return how many functions a piece of work calls."""
    calls = 0

    def count(_frame, event, _argument):
        nonlocal calls
        calls += event in {"call", "c_call"}

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(before)
    return calls


def test_a_sample_costs_the_same_after_days_and_little_on_a_dense_gpu():
    """dcgm-exporter #599, gpu-operator #2482: what dense MIG costs must not pile up, here too."""
    fleet = Fleet.named("dense_mig")
    gpu = fleet.nodes[0].gpus[0]
    costs = []
    for at in (299.0, 3 * 86_400 + 299.0):
        fleet.advance_to(at)
        devices = (None, *gpu.mig_devices)
        all(gpu.gpm_sample(device) for device in devices)  # Works out the table of these minutes.
        fleet.advance_to(at + 1)
        costs.append(calls_of(lambda devices=devices: [*map(gpu.gpm_sample, devices)]))
    assert costs[0] == pytest.approx(costs[1], rel=0.05)
    assert costs[1] < 200 * len(devices)
