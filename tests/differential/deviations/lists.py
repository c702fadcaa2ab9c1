"""The lists of deviations (`*.toml`), as the documentation shows them."""

import tomllib
from dataclasses import dataclass
from pathlib import Path

_FILES = ("requests", "shared_memory", "models", "reports")
"""In the order of the page."""


@dataclass(frozen=True)
class Listed:
    """What Argosy does, what Triton does, and why, in Markdown. Only those with a `name` have differential cases."""

    argosy: str
    triton: str
    why: str = ""
    name: str = ""


@dataclass(frozen=True)
class Section:
    """Deviations of one area. `more` follows the title."""

    title: str
    deviations: tuple[Listed, ...]
    more: str = ""


def sections() -> list[Section]:
    """Return every list in the order of the page."""
    return [_section(Path(__file__).with_name(f"{name}.toml")) for name in _FILES]


def _section(path: Path) -> Section:
    content = tomllib.loads(path.read_text(encoding="utf-8"))
    return Section(**{**content, "deviations": tuple(Listed(**row) for row in content["deviations"])})
