"""The archive for a vendor: what of a GPU is in it, and what of its users is not."""

import json
import tarfile
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from cli.health import archive
from cli.health.dossier import Dossier, NoSuchGpuError
from health.checks.index import CHECKS
from slicewatch.wire.evidence import Holder, decode
from testbed import evidence

TAKEN = datetime(2027, 1, 15, 8, 0, tzinfo=UTC)
HOLDER = Holder(namespace="secret-project", pod="secret-model-0")
KERNEL = (
    "6,1,100,-;usb 1-1: new device",
    "3,2,200,-;NVRM: Xid (PCI:0000:02:00): 79, GPU has fallen off the bus.",
)


def dossier(**asked):
    gpus = [
        evidence.gpu(0, holders=(HOLDER,)),
        evidence.gpu(1, silent="gpu_is_lost", silent_seconds=90),
    ]
    events = [evidence.event(79, gpu=1, number=1), evidence.event(31, gpu=0, number=2)]
    said = evidence.evidence(gpus, events=events)
    return Dossier.of(said, **({"taken": TAKEN, "kernel_lines": KERNEL} | asked))


def test_it_holds_what_is_known_of_each_gpu():
    files = dossier(checks=CHECKS).files()
    assert set(files) == {
        "summary.txt", "evidence.json", "findings.json", "events.json", "versions.json",
        "gpu-0.json", "gpu-1.json", "kernel.log",
    }  # fmt: skip
    assert json.loads(files["gpu-1.json"])["device"]["uuid"] == evidence.uuid_of(1)
    assert decode(files["evidence.json"]).gpus[1].silent == "gpu_is_lost"
    assert [e["at"] for e in json.loads(files["events.json"])] == ["2027-01-15T07:59:59+00:00"] * 2


def test_it_names_nobody_who_used_the_gpu():
    for name, body in dossier().files().items():
        assert b"secret" not in body, name


def test_of_the_kernel_s_log_it_has_the_lines_about_gpus():
    assert dossier().files()["kernel.log"].decode() == KERNEL[1] + "\n"


def test_a_log_that_cannot_be_read_is_said_and_stops_nothing():
    made = dossier(kernel_lines=(), kernel_fault="/dev/kmsg cannot be read: not permitted")
    assert "kernel.log" not in made.files()
    assert "Kernel log: /dev/kmsg cannot be read: not permitted" in made.summary()


@pytest.mark.parametrize("wanted", [evidence.uuid_of(1), "1", "00000000:02:00.0"])
def test_one_gpu_is_chosen_by_uuid_index_or_bus_id(wanted):
    chosen = dossier(gpu=wanted)
    assert [gpu.device.gpu for gpu in chosen.gpus] == [1]
    assert [event.data for event in chosen.events] == [79]


def test_a_gpu_that_is_not_there_is_refused_with_those_that_are():
    with pytest.raises(NoSuchGpuError, match=r"no GPU 7; it has 0 \(GPU-"):
        dossier(gpu="7")


def test_what_the_checks_find_is_said_with_its_gpu():
    made = dossier(checks=CHECKS)
    assert {finding.gpu for finding in made.findings if finding.check == "gpu_lost"} == {
        evidence.uuid_of(1)
    }
    assert "finding: " in made.summary()


def test_a_check_that_fails_costs_no_archive():
    def fails(_):
        raise IndexError("no such state")

    broken = [replace(check, judge=fails) for check in CHECKS if check.id == "fabric"]
    made = dossier(checks=[*broken, *CHECKS])
    assert {finding.check for finding in made.findings} >= {"gpu_lost"}


class TestArchive:
    def test_it_is_one_folder_that_only_owner_and_group_may_read(self, tmp_path):
        path = tmp_path / "gpu-1.tar.gz"
        archive.write(dossier().files(), path, TAKEN)
        with tarfile.open(path) as written:
            names = written.getnames()
            summary = written.extractfile("gpu-1/summary.txt").read().decode()
        assert all(name.startswith("gpu-1/") for name in names)
        assert summary == dossier().summary()
        assert path.stat().st_mode & 0o777 == archive.MODE
        assert list(tmp_path.iterdir()) == [path]

    def test_without_its_folder_nothing_is_left_behind(self, tmp_path):
        with pytest.raises(FileNotFoundError):
            archive.write(dossier().files(), tmp_path / "missing" / "a.tar.gz", TAKEN)
        assert list(tmp_path.iterdir()) == []


class TestKernelLog:
    def test_a_file_with_it_is_read_whole(self, tmp_path):
        path = tmp_path / "dmesg"
        path.write_bytes(b"first\nsecond \xff\nthird")
        lines, fault = archive.kernel_records(path)
        assert (list(lines), fault) == (["first", "second �", "third"], "")

    def test_one_that_is_missing_says_so(self, tmp_path):
        lines, fault = archive.kernel_records(tmp_path / "none")
        assert not lines
        assert "cannot be read: No such file" in fault
