"""Links between documents lead to files and headings that are there."""

import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
# Of links with a scheme, nothing can be said without a network.
LINK = re.compile(r"\]\((?P<path>[^)#:\s]*)(?:#(?P<anchor>[^)\s]+))?\)")


@cache
def anchors(path):
    """Return what GitHub makes of the headings of a page."""
    titles = re.findall(r"^#+ (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def is_heading(path, anchor):
    """Tell whether a page has a heading; of other files than pages, nobody asks."""
    return anchor is None or path.suffix != ".md" or anchor in anchors(path)


def broken_links(path, text):
    """Return the links of a page that lead nowhere."""
    broken = []
    for match in LINK.finditer(text):
        target = (path.parent / match["path"]).resolve() if match["path"] else path
        if not target.exists() or not is_heading(target, match["anchor"]):
            broken.append(match[0])
    return broken


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_leads_somewhere(path):
    assert broken_links(path, path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "link", ["[x](docs/missing.md)", "[x](README.md#no-such-heading)", "[x](#no)"]
)
def test_a_link_that_leads_nowhere_is_found(link):
    assert broken_links(ROOT / "README.md", link)
