"""Elements of a picture (SVG). Lengths are in pixels."""

from collections.abc import Iterator, Sequence
from html import escape
from textwrap import wrap

MARGIN = 20
LINE = 16
"""Height of a line of text."""
_CHARACTER = 6.2
"""Width of a character of text, on average."""
_STYLE = (
    "text{font:12px system-ui,sans-serif;fill:#1f2328}"
    ".title{font-size:15px;font-weight:600}.small{font-size:11px;fill:#57606a}.lack{fill:#b42318}"
    ".node{fill:#f6f8fa;stroke:#d0d7de}.gpu{fill:#fff;stroke:#8c959f}.free{fill:#eaeef2;stroke:#d0d7de}"
    ".used{fill:#57606a}"
)
_ARROW = (
    '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
    '<path d="M0 0L8 4L0 8z" fill="#1f2328"/></marker></defs>'
)
Point = tuple[int, int]


def document(width: int, height: int, parts: Sequence[str]) -> str:
    """Return the picture with these elements."""
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">'
    background = f'<rect width="{width}" height="{height}" rx="6" fill="#fff"/>'
    arrows = [_ARROW] if any("marker-end" in part for part in parts) else []
    return "\n".join([head, f"<style>{_STYLE}</style>", *arrows, background, *parts, "</svg>", ""])


def text(x: int, y: int, words: str, style: str = "") -> str:
    """Return a line of text; `y` is its base line."""
    attribute = f' class="{style}"' if style else ""
    return f'<text x="{x}" y="{y}"{attribute}>{escape(words)}</text>'


def box(x: int, y: int, width: int, height: int, style: str = "", colour: str = "") -> str:
    """Return a rectangle of a style, or of a colour."""
    look = f'class="{style}"' if style else f'fill="{colour}"'
    return f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="3" {look}/>'


def arrow(start: Point, end: Point, words: str) -> str:
    """Return a bent arrow, whose words appear when it is pointed at."""
    (x, y), (to_x, to_y) = start, end
    bend = 40 if y == to_y else 0
    path = f"M{x} {y}Q{(x + to_x) // 2} {(y + to_y) // 2 - bend} {to_x} {to_y}"
    return (
        f'<path d="{path}" fill="none" stroke="#1f2328" stroke-width="1.5" stroke-dasharray="5 3" '
        f'marker-end="url(#head)"><title>{escape(words)}</title></path>'
    )


def lines(x: int, top: int, width: int, texts: Sequence[str], style: str = "") -> Iterator[str]:
    """Yield texts one below the other, broken at the width."""
    for at, line in enumerate(broken(texts, width)):
        yield text(x, top + (at + 1) * LINE - 4, line, style)


def broken(texts: Sequence[str], width: int) -> list[str]:
    """Return the lines of texts that are broken at a width."""
    return [line for one in texts for line in wrap(one, max(20, int(width / _CHARACTER)), subsequent_indent="    ")]
