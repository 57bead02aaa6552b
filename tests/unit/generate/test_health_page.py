"""The reference of the health checks: all of them, and every Xid, as they are declared."""

import re

from cli.generate.health_page import health_page
from health.checks.index import CHECKS
from slicewatch.hardware.xids import XIDS

PAGE = health_page()


def rows(heading):
    """Return the cells of the table rows of a section, without the head."""
    section = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("| `")]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]


def test_every_check_and_every_xid_has_one_row():
    names = re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE)
    expected = [check.id for check in CHECKS] + [str(number) for number in XIDS]
    assert sorted(names) == sorted(expected)


def test_a_row_says_what_the_check_declares():
    found = {row[0]: row for row in rows("Memory errors")}
    assert found["`row_remap_pending`"][2:] == [
        "`RowRemapPending`", "reset", "`GPUResetRequired`", "120", "300", "`remapped_rows`",
    ]  # fmt: skip


def test_a_row_says_how_an_xid_is_taken():
    found = {row[0]: row for row in rows("The Xids one by one")}
    assert found["`79`"][3].startswith("a cordon")
    assert found["`79`"][4:] == ["reboot the node", "all"]
    assert found["`145`"][5] == "Blackwell, Grace Blackwell"
