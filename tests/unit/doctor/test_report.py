"""The report: for people, for programs, and as an exit status."""

import json

from hypothesis import given
from hypothesis import strategies as st

from exporter.doctor.check import Finding, Verdict
from exporter.doctor.report import document, status, table

FINDINGS = st.lists(
    st.builds(
        Finding, check=st.sampled_from(["nvml", "device-files"]), looks_at=st.just("x"),
        verdict=st.sampled_from(Verdict), seen=st.from_regex(r"[a-z]{1,9}", fullmatch=True),
        remedy=st.sampled_from(["", "mend it"]),
    )
)  # fmt: skip


@given(FINDINGS)
def test_the_table_has_every_finding_and_the_json_is_the_same(findings):
    lines = table(findings, coloured=False).splitlines()
    shown = [line.split() for line in lines if not line.lstrip().startswith("->")][:-2]
    assert shown == [[f.verdict, f.check, f.seen] for f in findings]
    assert sum("-> mend it" in line for line in lines) == sum(bool(f.remedy) for f in findings)
    read = json.loads(document(findings))["findings"]
    assert [(f["check"], f["verdict"], f["seen"], f["remedy"]) for f in read] == [
        (f.check, f.verdict, f.seen, f.remedy) for f in findings
    ]


@given(FINDINGS)
def test_the_status_is_1_exactly_if_something_failed(findings):
    assert status(findings) == any(f.verdict == "failed" for f in findings)


@given(FINDINGS)
def test_colour_changes_nothing_but_colour(findings):
    coloured = table(findings, coloured=True)
    for code in ("\x1b[32m", "\x1b[33m", "\x1b[31m", "\x1b[36m", "\x1b[0m"):
        coloured = coloured.replace(code, "")
    assert coloured == table(findings, coloured=False)
