"""GPM: the mean between two samples, metric by metric, and how many are taken at once."""

import threading
import time

import pynvml
import pytest

GRAPHICS, SM, DRAM = 1, 2, 10
NOT_SUPPORTED, NO_DATA = pynvml.NVML_ERROR_NOT_SUPPORTED, pynvml.NVML_ERROR_NO_DATA
DEADLINE_SECONDS = 10
INSTANCE, SLOT = 7, 3


@pytest.fixture
def samples(machine):
    """Two samples with nothing in them yet."""
    made = [pynvml.nvmlGpmSampleAlloc() for _ in range(2)]
    yield made
    for sample in made:
        pynvml.nvmlGpmSampleFree(sample)


def show(machine, seconds, slot=None, **totals):
    for name, total in totals.items():
        machine.answers.put_gpm(globals()[name], total=total, seconds=seconds, slot=slot)
    machine.show()


def means(samples, *metrics):
    wanted = pynvml.c_nvmlGpmMetricsGet_t()
    wanted.version = pynvml.NVML_GPM_METRICS_GET_VERSION
    wanted.sample1, wanted.sample2 = samples
    wanted.numMetrics = len(metrics)
    for row, metric in enumerate(metrics):
        wanted.metrics[row].metricId = metric
    pynvml.nvmlGpmMetricsGet(wanted)
    return [(row.nvmlReturn, row.value) for row in wanted.metrics[: len(metrics)]]


def test_metrics_are_means_between_two_samples(machine, samples):
    show(machine, 10.0, GRAPHICS=500.0, DRAM=100.0)
    pynvml.nvmlGpmSampleGet(machine.gpu, samples[0])
    show(machine, 12.0, GRAPHICS=650.0, DRAM=100.0)
    pynvml.nvmlGpmSampleGet(machine.gpu, samples[1])
    assert means(samples, GRAPHICS, DRAM) == [(0, 75.0), (0, 0.0)]


def test_a_sample_is_not_changed_by_what_happens_after_it(machine, samples):
    show(machine, 1.0, SM=10.0)
    pynvml.nvmlGpmSampleGet(machine.gpu, samples[0])
    show(machine, 2.0, SM=30.0)
    pynvml.nvmlGpmSampleGet(machine.gpu, samples[1])
    show(machine, 3.0, SM=1000.0)
    assert means(samples, SM) == [(0, 20.0)]


def test_each_metric_has_a_return_code_of_its_own(machine, samples):
    """DCGM #303: metrics that fail after an Xid are no zeros."""
    machine.answers.refuse("nvmlGpmMetricsGet", pynvml.NVML_ERROR_UNKNOWN, key=(SM, 0))
    show(machine, 1.0, GRAPHICS=10.0)
    pynvml.nvmlGpmSampleGet(machine.gpu, samples[0])
    show(machine, 2.0, GRAPHICS=20.0)
    pynvml.nvmlGpmSampleGet(machine.gpu, samples[1])
    assert means(samples, SM, GRAPHICS, DRAM) == [
        (pynvml.NVML_ERROR_UNKNOWN, 0.0),
        (0, 10.0),
        (NOT_SUPPORTED, 0.0),
    ]


def test_two_samples_of_one_moment_and_counters_that_fell_have_no_data(machine, samples):
    show(machine, 1.0, SM=10.0)
    for sample in samples:
        pynvml.nvmlGpmSampleGet(machine.gpu, sample)
    assert means(samples, SM) == [(NO_DATA, 0.0)]
    show(machine, 2.0, SM=5.0)
    pynvml.nvmlGpmSampleGet(machine.gpu, samples[1])
    assert means(samples, SM) == [(NO_DATA, 0.0)]
    pynvml.nvmlGpmSampleGet(machine.gpu, samples[0])


def test_an_instance_is_sampled_by_its_id_and_by_its_handle(machine, samples):
    show(machine, 1.0, slot=SLOT, SM=10.0)
    pynvml.nvmlGpmMigSampleGet(machine.gpu, INSTANCE, samples[0])
    show(machine, 2.0, slot=SLOT, SM=40.0)
    pynvml.nvmlGpmSampleGet(machine.instance, samples[1])
    assert means(samples, SM) == [(0, 30.0)]
    with pytest.raises(pynvml.NVMLError_NotSupported):
        pynvml.nvmlGpmSampleGet(machine.gpu, samples[0])
    with pytest.raises(pynvml.NVMLError_InvalidArgument):
        pynvml.nvmlGpmMigSampleGet(machine.gpu, INSTANCE + 1, samples[0])


def test_samples_of_two_devices_or_of_two_lives_of_an_instance_have_nothing_between(
    machine, samples
):
    show(machine, 1.0, slot=SLOT, SM=10.0)
    show(machine, 1.0, SM=10.0)
    pynvml.nvmlGpmSampleGet(machine.gpu, samples[0])
    pynvml.nvmlGpmMigSampleGet(machine.gpu, INSTANCE, samples[1])
    with pytest.raises(pynvml.NVMLError_InvalidArgument):
        means(samples, SM)
    machine.generation += 1
    show(machine, 2.0, slot=SLOT, SM=20.0)
    pynvml.nvmlGpmMigSampleGet(machine.gpu, INSTANCE, samples[0])
    with pytest.raises(pynvml.NVMLError_InvalidArgument):
        means(samples, SM)


def test_a_sample_that_was_never_taken_has_nothing_to_compare(machine, samples):
    with pytest.raises(pynvml.NVMLError_InvalidArgument):
        means(samples, SM)


def test_a_gpu_without_metrics_takes_no_sample(machine, samples):
    with pytest.raises(pynvml.NVMLError_NotSupported):
        pynvml.nvmlGpmSampleGet(machine.gpu, samples[0])


def test_a_request_of_another_version_is_refused(machine, samples):
    wanted = pynvml.c_nvmlGpmMetricsGet_t()
    wanted.version = 2
    wanted.sample1, wanted.sample2 = samples
    with pytest.raises(pynvml.NVMLError) as error:
        pynvml.nvmlGpmMetricsGet(wanted)
    assert error.value.value == pynvml.NVML_ERROR_ARGUMENT_VERSION_MISMATCH


def test_one_sample_after_the_other_is_seen_as_one_at_a_time(machine, samples):
    show(machine, 1.0, SM=10.0)
    for sample in samples * 5:
        pynvml.nvmlGpmSampleGet(machine.gpu, sample)
    assert machine.file.gpm_most_at_once == 1


def test_samples_taken_at_once_on_two_gpus_are_noticed(machine, samples):
    """DataDog #54458, plazonic #7: a real driver panics, even with one thread for each GPU."""
    show(machine, 1.0, SM=10.0)
    machine.show(gpu=1)
    first, second = machine.gpu, machine.other
    machine.file.hang(0, hanging=True)
    hanging = threading.Thread(target=pynvml.nvmlGpmSampleGet, args=(first, samples[0]))
    hanging.start()
    try:
        deadline = time.monotonic() + DEADLINE_SECONDS
        while machine.file.gpm_most_at_once < 2 and time.monotonic() < deadline:
            pynvml.nvmlGpmSampleGet(second, samples[1])
    finally:
        machine.file.hang(0, hanging=False)
        hanging.join(DEADLINE_SECONDS)
    assert machine.file.gpm_most_at_once == 2
