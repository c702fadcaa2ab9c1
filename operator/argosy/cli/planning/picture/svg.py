"""Elements of a picture (SVG). Lengths are in pixels."""

from collections.abc import Iterator, Sequence
from html import escape
from textwrap import wrap

from argosy_common.wording import shortened

MARGIN = 20
LINE = 16
"""Height of a line of text."""
_CHARACTER, _SMALL_CHARACTER, _TITLE_CHARACTER = 7.0, 6.4, 9.0
"""Widths of a character of text, on average of wide fonts."""
_INDENT = 4
"""Width of a space that begins a line."""
_STYLE = (
    "text{font:12px system-ui,'DejaVu Sans',sans-serif;fill:#1f2328}"
    ".title{font-size:15px;font-weight:600}.small{font-size:11px;fill:#57606a}.lack{fill:#b42318}"
    ".moves{fill:#0550ae}.node{fill:#f6f8fa;stroke:#d0d7de}.gpu{fill:#fff;stroke:#8c959f}"
    ".free{fill:#eaeef2;stroke:#d0d7de}.used{fill:#57606a}.kept{fill:url(#kept);stroke:#d0d7de}"
    ".label{fill:#fff;stroke:#d0d7de}"
)
ARROWS = {"changes": "#1f2328", "moves": "#0550ae"}
"""The colours of arrows: of what a plan changes, and of what consolidation would move."""
_DEFINITIONS = (
    "<defs>"
    '<pattern id="kept" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
    '<rect width="6" height="6" fill="#fff"/><rect width="2" height="6" fill="#eaeef2"/></pattern>'
    + "".join(
        f'<marker id="head-{name}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        f'<path d="M0 0L8 4L0 8z" fill="{colour}"/></marker>'
        for name, colour in ARROWS.items()
    )
    + "</defs>"
)
_FULL, _FAINT = 0.7, 0.3
"""Opacities by which labels are read on every colour."""
Point = tuple[int, int]
Frame = tuple[int, int, int, int]
"""Left, top, width and height of a rectangle."""


def document(width: int, height: int, parts: Sequence[str]) -> str:
    """Return the picture with these elements."""
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">'
    background = f'<rect width="{width}" height="{height}" rx="6" fill="#fff"/>'
    return "\n".join([head, f"<style>{_STYLE}</style>", _DEFINITIONS, background, *parts, "</svg>", ""])


def text(x: int, y: int, words: str, style: str = "", full: str = "") -> str:
    """Return a line of text; `y` is its base line, and `full` appears when it is pointed at."""
    attribute = f' class="{style}"' if style else ""
    title = f"<title>{escape(full)}</title>" if full else ""
    return f'<text x="{x}" y="{y}"{attribute}>{escape(words)}{title}</text>'


def fitted(x: int, y: int, width: int, words: str, style: str = "") -> str:
    """Return a line of text that is shortened to a width; all of it appears when it is pointed at."""
    short = shortened(words, characters(width, style))
    return text(x, y, short, style, full=words if short != words else "")


def characters(width: int, style: str = "") -> int:
    """Return how many characters of text a width has room for, at least one."""
    return max(1, int(width / (_SMALL_CHARACTER if style == "small" else _CHARACTER)))


def box(x: int, y: int, width: int, height: int, style: str) -> str:
    """Return a rectangle of a style."""
    return f'<rect x="{x}" y="{y}" width="{width}" height="{height}" class="{style}"/>'


def named_box(frame: Frame, colour: str, words: str, *, faint: bool = False) -> str:
    """Return a rectangle of a colour; `words` appear when it is pointed at."""
    x, y, width, height = frame
    look = f'fill="{colour}" fill-opacity="{_FAINT if faint else _FULL}" stroke="#fff" stroke-width="0.5"'
    title = f"<title>{escape(words)}</title>"
    return f'<rect x="{x}" y="{y}" width="{width}" height="{height}" {look}>{title}</rect>'


def text_width(words: str) -> int:
    """Return the width of a small text."""
    return int(len(words) * _SMALL_CHARACTER) + 8


def lines(x: int, top: int, width: int, texts: Sequence[str], style: str = "") -> Iterator[str]:
    """Yield texts one below the other, broken at the width. Spaces that begin one indent all of its lines."""
    for at, (indent, line) in enumerate(broken(texts, width, style)):
        yield text(x + indent * _INDENT, top + (at + 1) * LINE - 4, line, style)


def broken(texts: Sequence[str], width: int, style: str = "") -> list[tuple[int, str]]:
    """Return the lines of texts that are broken at a width, each with the spaces that indent it."""
    most = max(20, int(width / (_TITLE_CHARACTER if style == "title" else _CHARACTER)))
    result: list[tuple[int, str]] = []
    for one in texts:
        indent = len(one) - len(one.lstrip())
        parts = wrap(one.strip(), max(20, most - indent))
        result += [(indent + 4 * (at > 0), part) for at, part in enumerate(parts)]
    return result
