"""Files, archives and objects that people hand to the command line, as wrong as they can be."""

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from cli.health import archive, replay, status, tape
from cli.health.dossier import Dossier
from cli.health.replay import PlayedError, Wanted
from health import book
from testbed import evidence

TAKEN = datetime(2027, 1, 15, 8, 0, tzinfo=UTC)


@pytest.mark.parametrize("since", ["1700000000000", "1e18", "-1e12", "1e300"])
def test_a_slot_with_a_time_that_cannot_be_is_shown_all_the_same(since):
    """Such as one that somebody wrote in milliseconds."""
    read = book.read({"slots": f'{{"a":{{"since":{since},"check":"gpu_lost"}}}}'})
    assert any(
        line.startswith("  a for gpu_lost since a time that cannot be")
        for line in status.budget_lines(read, "monitoring")
    )


@pytest.mark.parametrize("age_seconds", [1e300, -1e300, 1e12, -1e15])
def test_an_event_of_an_impossible_time_is_in_the_archive_all_the_same(age_seconds):
    happened = evidence.event(79, gpu=0, age_seconds=age_seconds)
    said = evidence.evidence([evidence.gpu(0)], events=[happened])
    files = Dossier.of(said, taken=TAKEN).files()
    assert b"an impossible time" in files["events.json"]
    assert b"xid 79" in files["summary.txt"]


def test_of_two_gpus_with_one_index_each_has_its_file():
    """One is gone, and another one got its index with the next start of NVML."""
    gpus = [evidence.gpu(0, uuid="GPU-gone", silent="gpu_not_found"), evidence.gpu(0)]
    files = Dossier.of(evidence.evidence(gpus), taken=TAKEN).files()
    assert b"GPU-gone" in files["gpu-0.json"]
    assert evidence.uuid_of(0).encode() in files[f"gpu-0-{evidence.uuid_of(0)}.json"]


def test_a_log_without_end_is_read_in_part_and_that_is_said(monkeypatch):
    monkeypatch.setattr(archive, "MOST_LOG_BYTES", 100_000)
    lines, fault = archive.kernel_records(Path(os.devnull).with_name("zero"))
    assert fault == "longer than 100000 bytes, of which only the first were read"
    assert sum(map(len, lines)) <= 100_000 + archive.LONGEST_RECORD_BYTES


def test_a_log_is_read_whatever_its_bytes_are(tmp_path):
    path = tmp_path / "dmesg"
    path.write_bytes(b"NVRM: one\n\xff\xfe\n\nNVRM: two")
    assert archive.kernel_records(path) == (["NVRM: one", "��", "", "NVRM: two"], "")


def test_a_recording_without_lines_is_refused_before_it_fills_the_memory(monkeypatch, tmp_path):
    monkeypatch.setattr(tape, "LONGEST_ANSWER_BYTES", 1000)
    path = tmp_path / "endless.jsonl"
    path.symlink_to(Path(os.devnull).with_name("zero"))
    with pytest.raises(PlayedError, match=r"endless\.jsonl:1: longer than the 1000 bytes"):
        replay.run(Wanted(file=str(path)))


def test_more_polls_than_can_be_counted_are_refused():
    with pytest.raises(PlayedError, match="more polls than can be counted"):
        replay.run(Wanted(file="demo", interval="1e-9", duration="1e308"))
