"""The deviations from Triton, from the lists that the differential tests name them by."""

from docs.reference.resources import NOTE
from tests.differential.deviations.lists import Section, sections

_TITLE = "# Deviations from Triton\n\n"
_INTRODUCTION = """
What Argosy does otherwise than tritonserver 2.51 on purpose. Any other difference that
[Triton compatibility](../triton-compatibility.md) does not name is a bug. The differential tests (`tests/differential`)
hold Argosy to the answer that it has here, and to Triton's in all else.
"""
_HEADER = "| Argosy | Triton | why |\n|---|---|---|\n"


def deviations_page() -> str:
    """Return the page: a table for each list."""
    note = NOTE.format(source="tests/differential/deviations")
    return _TITLE + note + _INTRODUCTION + "".join(map(_section, sections()))


def _section(section: Section) -> str:
    more = f"{section.more}\n\n" if section.more else ""
    rows = (f"| {row.argosy} | {row.triton} | {row.why} |\n" for row in section.deviations)
    return f"\n## {section.title}\n\n{more}{_HEADER}{''.join(rows)}"
