"""Xids in the kernel's log, in the forms that drivers write."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from exporter.kernel_log.xid import MOST_TEXT, Address, LoggedXid, address_of, xid_in

CHANGED = "GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)"


def xid(number, text="", bus_id="0000:01:00", **instance):
    return LoggedXid(pci_bus_id=bus_id, number=number, at_seconds=5.0, text=text, **instance)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (
            "NVRM: Xid (PCI:0000:01:00): 79, pid=1234, name=python, GPU has fallen off the bus.",
            xid(79, "pid=1234, name=python, GPU has fallen off the bus."),
        ),
        (
            "NVRM: Xid (PCI:0000:01:00): 79, GPU has fallen off the bus.",
            xid(79, "GPU has fallen off the bus."),
        ),
        (
            "NVRM: Xid (PCI:0000:01:00): 45, pid='<unknown>', name=<unknown>, Ch 00000008",
            xid(45, "pid='<unknown>', name=<unknown>, Ch 00000008"),
        ),
        (
            "NVRM: Xid (PCI:0000:01:00 GPU-I:05): 94, pid=7194, Contained: LTC",
            xid(94, "pid=7194, Contained: LTC", gpu_instance=5),
        ),
        (
            "NVRM: Xid (PCI:0000:01:00 GPU-I:09 GPU-CI:01): 95, x",
            xid(95, "x", gpu_instance=9, compute_instance=1),
        ),
        (
            f"NVRM: Xid (PCI:0008:01:00): 154, {CHANGED}",
            xid(154, CHANGED, "0008:01:00"),
        ),
        ("NVRM: Xid (PCI:0000:01:00): 154", xid(154)),
        ("NVRM: Xid (PCI:00000000:3B:00.0): 31, x", xid(31, "x", "00000000:3b:00.0")),
    ],
)
def test_each_form_of_the_line_is_understood(line, told):
    """A GPU in MIG mode says its instance inside the brackets, where others look for none."""
    assert xid_in(line, 5.0) == told


@pytest.mark.parametrize(
    "line",
    [
        "nvidia-nvswitch3: SXid (PCI:0000:85:00.0): 12028, Non-fatal, Link 32 egress",
        "NVRM: GPU at PCI:0000:01:00: GPU-5b3c",
        "NVRM: Xid (PCI:0000:01:00)",
        "NVRM: Xid (PCI:0000:01:00): ",
        "NVRM: Xid (PCI:0000:01): 79",
        "NVRM: Xid (PCI:0000:01:00): 12345678901, x",
        "something NVRM: Xid (PCI:0000:01:00): 79",
    ],
)
def test_other_lines_tell_of_no_xid(line):
    assert xid_in(line, 5.0) is None


def test_a_text_without_end_is_cut():
    assert len(xid_in(f"NVRM: Xid (PCI:0000:01:00): 13, {'x' * 9000}", 5.0).text) == MOST_TEXT


def test_the_log_and_nvml_mean_the_same_gpu():
    assert address_of("0000:3b:00") == address_of("00000000:3B:00.0") == Address(0, 0x3B, 0)
    assert address_of("0008:01:00") == Address(8, 1, 0)
    assert address_of("") is None


@given(st.text(max_size=80))
@example("(PCI:0000:01:00): 154, GPU recovery action changed from")
def test_whatever_follows_the_mark_nothing_raises(rest):
    found = xid_in(f"NVRM: Xid {rest}", 5.0)
    if found is not None:
        assert address_of(found.pci_bus_id) is not None
