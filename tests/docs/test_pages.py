"""Links lead somewhere, the index has each page, and a page can be read in one sitting."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.docs.blocks import DOCUMENTS, ROOT

LINES = 250
INDEX = ROOT / "docs" / "README.md"
PAGES = sorted(ROOT.glob("docs/**/*.md"))


def links(text: str) -> Iterator[str]:
    """Yield the targets of a document's links that lead to files, outside of code."""
    for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"```.*?```|`[^`\n]*`", "", text, flags=re.DOTALL)):
        if not re.match(r"[a-z]+:", target):
            yield target


def anchors(text: str) -> set[str]:
    """Return the anchors of a document's headings, as GitHub names them."""
    headings = re.findall(r"^#+ (.+)$", re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def broken(document: Path) -> list[str]:
    """Return the links of a document to files or headings that are not there."""
    missing = []
    for target in links(document.read_text()):
        name, _, anchor = target.partition("#")
        file = (document.parent / name).resolve() if name else document
        if not file.exists() or (anchor and anchor not in anchors(file.read_text())):
            missing.append(target)
    return missing


@pytest.mark.parametrize("document", [*DOCUMENTS, ROOT / "CHANGELOG.md"], ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(document: Path) -> None:
    assert broken(document) == []


def test_a_broken_link_is_noticed(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# A `b`: c\n[1](#a-b-c) [2](#nothing) [3](other.md) `[4](code.md)` [5](https://example.com/x)\n")
    assert broken(page) == ["#nothing", "other.md"]


@pytest.mark.parametrize(
    "page",
    [path for path in PAGES if path.parent.name != "reference"],  # those have a line for each field or flag
    ids=lambda path: str(path.relative_to(ROOT)),
)
def test_a_page_has_at_most_250_lines(page: Path) -> None:
    assert len(page.read_text().splitlines()) <= LINES


def test_the_index_has_every_page() -> None:
    linked = {(INDEX.parent / target.partition("#")[0]).resolve() for target in links(INDEX.read_text())}
    assert {page for page in PAGES if page != INDEX} <= linked
