"""The samples of the text of a server's /metrics.

Tests compare this parser to prometheus-client's, which takes seconds for what a thousand models expose, as it goes
character by character. This one reads the buckets of a histogram together, parses labels that many lines have once,
and skips metrics that are not read. Unusual lines are parsed one by one.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache

from .samples import BUCKETS, SAMPLE_NAMES, Buckets, Sample

_LE = ',le="'
_FAR = 1 << 16
"""Characters behind a histogram's first bucket in which its last one is looked for."""
_NAME = re.compile(r"[^\s{]+")
_LINE = re.compile(r"[^\s{]+\s*(?:\{(.*)\})?\s*([^\s}]+)(?:\s+-?[0-9]+)?\s*")
"""Labels, value, and a time in milliseconds, which is that of the scrape where it is left out."""
_LABEL = re.compile(r'\s*([a-zA-Z_][a-zA-Z0-9_]*)\s*=\s*"((?:[^"\\]|\\.)*)"\s*(?:,|$)')
_ESCAPE = re.compile(r"\\(.)")
_ESCAPED = {"n": "\n", "\\": "\\", '"': '"'}


class ExpositionError(Exception):
    """The text is none that Prometheus could read; the message says where."""


def samples(text: str) -> Iterator[Sample | Buckets]:
    """Yield the samples that are read of a server. Raises ExpositionError."""
    cached: dict[str, Mapping[str, str] | None] = {}
    at = 0
    while at < len(text):
        end = _line_end(text, at)
        line = text[at:end]
        name, _, rest = line.partition("{")
        sample: Sample | Buckets | None = None
        if name in BUCKETS:
            sample, end = _buckets(text, at, end, cached)
        elif name in SAMPLE_NAMES:
            sample = _usual(name, rest, cached)
        if sample is None:
            sample = _sample(text, line, at)
        if sample is not None:
            yield sample
        at = end + 1


def _usual(name: str, rest: str, cached: dict[str, Mapping[str, str] | None]) -> Sample | None:
    """Return the sample of a usual line: labels that many lines have, and a value. None for any other line."""
    text, _, value = rest.rpartition("} ")
    labels, number = _cached_labels(text, cached), _number(value)
    return Sample(name, labels, number) if labels is not None and number is not None else None


def _buckets(text: str, at: int, end: int, cached: dict[str, Mapping[str, str] | None]) -> tuple[Buckets | None, int]:
    """Return the buckets of one histogram, whose first line is from `at` to `end`, and the end of their last line.

    Return None if the lines must be parsed one by one: the bound is not the last label, a value is followed by a time,
    or other lines are between them.
    """
    name, _, rest = text[at:end].partition("{")
    inner, le, _ = rest.rpartition(_LE)
    labels = _cached_labels(inner, cached) if le else None
    before = f"{name}{{{inner}{le}"
    last = text.find(f'{before}+Inf"}} ', at, at + _FAR) if labels is not None else -1
    if labels is None or last < 0:
        return None, end
    all_end = _line_end(text, last)
    lines = text[at + len(before) : all_end]
    if lines.count("\n") != lines.count("\n" + before):
        return None, end
    flat = lines.replace("\n" + before, "\n").replace('"} ', "\n").split("\n")
    bounds, counts = tuple(flat[::2]), _numbers(flat[1::2])
    if counts is None or len(bounds) != len(counts) or not _are_bounds(bounds):
        return None, end
    return Buckets(name, labels, bounds, counts), all_end


@lru_cache(maxsize=256)
def _are_bounds(texts: tuple[str, ...]) -> bool:
    """Return whether these are valid bounds. Cached, because many histograms have the same."""
    return _numbers(texts) is not None


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return end if end >= 0 else len(text)


def _sample(text: str, line: str, at: int) -> Sample | None:
    """Return the sample of the line that begins at `at`; None if its metric is not read. Raises ExpositionError."""
    name = _NAME.match(line)
    if name is None or name[0] not in SAMPLE_NAMES:
        return None
    match = _LINE.fullmatch(line)
    value = _number(match[2]) if match is not None else None
    labels = _labels(match[1] or "") if match is not None else None
    if value is None or labels is None:
        number = text.count("\n", 0, at) + 1
        raise ExpositionError(f"its metrics cannot be read: line {number} is {line[:200]!r}")
    return Sample(name[0], labels, value)


def _cached_labels(text: str, cached: dict[str, Mapping[str, str] | None]) -> Mapping[str, str] | None:
    """Return the labels of a text, parsed once."""
    if text not in cached:
        cached[text] = _labels(text)
    return cached[text]


def _labels(text: str) -> Mapping[str, str] | None:
    """None where that is not what labels are."""
    labels: dict[str, str] = {}
    end = 0
    while end < len(text):
        label = _LABEL.match(text, end)
        if label is None:
            return labels if not text[end:].strip() else None
        value = label[2]
        labels[label[1]] = _ESCAPE.sub(_unescaped, value) if "\\" in value else value
        end = label.end()
    return labels


def _unescaped(match: re.Match[str]) -> str:
    """Return the character of an escape sequence; an unknown sequence is returned unchanged."""
    return _ESCAPED.get(match[1], match[0])


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _numbers(texts: Iterable[str]) -> tuple[float, ...] | None:
    """None where one of them is none."""
    try:
        return tuple(map(float, texts))
    except ValueError:
        return None
