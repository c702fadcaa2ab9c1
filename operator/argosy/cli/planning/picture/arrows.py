"""Arrows of a picture: replicas that move between the same two places are one arrow, which says what they are."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape

from argosy.cli.planning.picture.svg import ARROWS, Frame, Point, box, text, text_width

_ALONG = (0.5, 0.35, 0.65, 0.2, 0.8)
"""Where a label may be between an arrow's ends, the best place first."""
_BEND, _HEIGHT = 40, 16


@dataclass(frozen=True, slots=True)
class Moving:
    """Something that moves from one point to another. `kind`: of its arrow, of those in `ARROWS`."""

    name: str
    start: Point
    end: Point
    kind: str = "changes"


def arrows(moving: Iterable[Moving]) -> Iterator[str]:
    """Yield an arrow for all that moves between the same points, then the labels, of which none covers another."""
    together: dict[tuple[Point, Point, str], list[str]] = {}
    for one in moving:
        if one.start != one.end:
            together.setdefault((one.start, one.end, one.kind), []).append(one.name)
    yield from (_arrow(*ends, names) for ends, names in together.items())
    yield from _labels(together)


def _arrow(start: Point, end: Point, kind: str, names: Sequence[str]) -> str:
    (x, y), (to_x, to_y), (bend_x, bend_y) = start, end, _bend(start, end)
    look = f'stroke="{ARROWS[kind]}" stroke-width="1.5" stroke-dasharray="5 3" marker-end="url(#head-{kind})"'
    title = f"<title>{escape(', '.join(names))} moves</title>"
    return f'<path d="M{x} {y}Q{bend_x} {bend_y} {to_x} {to_y}" fill="none" {look}>{title}</path>'


def _labels(together: Mapping[tuple[Point, Point, str], Sequence[str]]) -> Iterator[str]:
    taken: list[Frame] = []
    for (start, end, _), names in together.items():
        words = names[0] if len(names) == 1 else f"{len(names)} moves"
        frames = (_frame(start, end, along, words) for along in _ALONG)
        frame = next((one for one in frames if not any(_overlap(one, other) for other in taken)), None)
        if frame is not None:
            taken.append(frame)
            yield box(*frame, "label")
            yield text(frame[0] + 4, frame[1] + 12, words, "small", full=", ".join(names))


def _frame(start: Point, end: Point, along: float, words: str) -> Frame:
    """Return the place of a label on an arrow's curve."""
    bend, back = _bend(start, end), 1 - along
    x, y = (
        round(back * back * start[axis] + 2 * back * along * bend[axis] + along * along * end[axis]) for axis in (0, 1)
    )
    width = text_width(words)
    return max(0, x - width // 2), max(0, y - _HEIGHT // 2), width, _HEIGHT


def _bend(start: Point, end: Point) -> Point:
    return (start[0] + end[0]) // 2, (start[1] + end[1]) // 2 - (_BEND if start[1] == end[1] else 0)


def _overlap(one: Frame, other: Frame) -> bool:
    return all(one[at] < other[at] + other[at + 2] and other[at] < one[at] + one[at + 2] for at in (0, 1))
