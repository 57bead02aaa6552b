"""Pages of dcgm-exporter, as they are and as they can break."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporter.dcgm.page import FIELD, read

GPU = "GPU-34319582-d595-d1c7-d1d2-179bcfa61660"


def line(value="0.5", more="", **labels):
    shown = {"UUID": GPU, "GPU_I_PROFILE": "1g.5gb", "GPU_I_ID": "7"} | labels
    text = ",".join(f'{name}="{text}"' for name, text in shown.items())
    return f"{FIELD}{{{text}{more}}} {value}\n"


def ratio(page, number=7, profile="1g.5gb"):
    return page.instances.get((GPU, number), {}).get(profile)


def test_the_page_of_2_6_tells_how_busy_the_instance_is(recorded):
    page = read(recorded("2.6-a100-40gb"))
    assert page.instances == {(GPU, 13): {"1g.5gb": 0.995687}}
    assert (page.broken, page.rejected) == (0, 0)


def test_the_page_of_3_2_lists_three_idle_instances_beside_a_whole_gpu(recorded):
    page = read(recorded("3.2-a800-80gb"))
    parent = "GPU-1f027ee8-6e1e-2b8c-0108-3d370e5f0418"
    assert sorted(page.instances) == [(parent, 3), (parent, 5), (parent, 6)]
    assert all(found == {"2g.20gb": 0} for found in page.instances.values())


def test_pod_labels_that_come_and_go_change_no_instance(recorded):
    """dcgm-exporter #342, #512: some series have pod labels, some have none."""
    page = read(recorded("4.1-h100-80gb"))
    assert [number for _, number in page.instances] == [7, 8, 9]


def test_a_page_without_profiling_fields_is_recognised(recorded):
    """dcgm-exporter #571, #608, #513: profiling silently missing; #655: hostname in lower case."""
    page = read(recorded("4.8-a30-no-profiling"))
    assert (page.of_dcgm, page.profiled, page.instances) == (True, False, {})


def test_a_page_of_whole_gpus_is_profiled_though_it_has_no_instance(recorded):
    whole = "\n".join(x for x in recorded("3.2-a800-80gb").split("\n") if "GPU_I_ID" not in x)
    page = read(whole)
    assert (page.of_dcgm, page.profiled, page.instances) == (True, True, {})


@pytest.mark.parametrize(
    "host",
    ['Hostname="node-a"', 'hostname="node-a"', "", 'Hostname="node-a",pod="p",pod_uid="u"'],
)
def test_the_label_forms_of_all_versions_name_the_same_instance(host):
    """dcgm-exporter #655, #718."""
    assert ratio(read(line(more=f",{host}" if host else ""))) == 0.5


def test_the_old_name_of_the_uuid_label_is_understood():
    text = line().replace("UUID=", "uuid=")
    assert ratio(read(text)) == 0.5


@pytest.mark.parametrize(
    "blank",
    [
        "2147483632", "2147483633", "9223372036854775792", "9223372036854775794",
        "140737488355328.000000", "140737488355330.000000", "NaN", "+Inf", "-0.1",
    ],
)  # fmt: skip
def test_blanks_are_rejected_and_counted(blank):
    """gpu-monitoring-tools #152, DCGM #83."""
    page = read(line(blank) + line("0.25", GPU_I_ID="8"))
    assert ratio(page) is None
    assert ratio(page, number=8) == 0.25
    assert page.rejected == 1


def test_more_than_all_of_the_time_is_rejected_without_harm_to_other_instances():
    """DCGM #152: the activity of a MIG instance above 100 %."""
    page = read(line("1.17") + line("0.9", GPU_I_ID="8"))
    assert (ratio(page), ratio(page, number=8)) == (None, 0.9)
    assert page.rejected == 1


@pytest.mark.parametrize(
    "broken",
    [
        line(more=',pod="a"b"'),
        line(more=',hpc_job="a\\"'),
        line(more=',pod="half a line'),
        line("no number"),
        line(""),
        line(GPU_I_ID="first"),
        line(GPU_I_ID=""),
        line(UUID=""),
        line(more=',UUID="twice"'),
        line(more=", =").replace("0.5", "#.5"),
        line().replace("{UUID", '{"another_name",UUID'),
    ],
)
def test_a_broken_line_is_counted_and_costs_only_itself(broken):
    """dcgm-exporter writes label values as they are, quotes and line ends included."""
    page = read(line("0.25", GPU_I_ID="8") + broken + line("0.75", GPU_I_ID="9"))
    assert page.broken == 1
    assert [number for _, number in page.instances] == [8, 9]


def test_a_line_end_inside_a_label_does_not_pass_for_a_series():
    page = read(line(more=',pod="a\nb"') + line("0.75", GPU_I_ID="9"))
    assert page.broken == 1
    assert [number for _, number in page.instances] == [9]


def test_only_a_line_feed_ends_a_line():
    text = line(more=',pod="a\x0b\x85\u2028\rb"')
    assert ratio(read(text)) == 0.5


def test_an_instance_that_is_reported_with_two_profiles_keeps_both():
    page = read(line("0.1") + line("0.9", GPU_I_PROFILE="3g.20gb"))
    assert ratio(page) == 0.1
    assert ratio(page, profile="3g.20gb") == 0.9


def test_a_page_of_something_else_has_no_series_of_dcgm():
    page = read("<html>\n<h1>DCGM_FI_PROF_GR_ENGINE_ACTIVE</h1>\n")
    assert (page.of_dcgm, page.profiled, page.instances) == (False, False, {})


@given(st.floats(0, 1), st.integers(0, 63))
def test_every_ratio_is_read_as_it_was_written(value, number):
    page = read(line(repr(value), GPU_I_ID=str(number)))
    assert ratio(page, number=number) == value


TEXT = st.text(
    st.sampled_from('{}",=\\ \n\t#0123456789.eE+-naifNGPU_ID\x00\ud7ff') | st.characters()
)


@given(TEXT, TEXT)
def test_nothing_that_a_page_contains_stops_the_rest_from_being_read(label, value):
    noise = line(value, more=f',pod="{label}"', GPU_I_ID="1")
    page = read(f"{noise}\n{line('0.25', GPU_I_ID='8')}{label}")
    assert ratio(page, number=8) == 0.25
