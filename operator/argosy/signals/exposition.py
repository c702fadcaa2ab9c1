"""The text of a server's /metrics, to samples.

prometheus-client has a parser too, and tests hold this one to it. That one looks at each character, which takes
seconds for what a thousand models expose; this one takes lines by two patterns, and passes over metrics that nobody
asks for.
"""

import re
from collections.abc import Iterator, Mapping

from argosy.fleet.signals.metricnames import SAMPLE_NAMES
from argosy.fleet.signals.samples import Sample

_NAME = re.compile(r"[^\s{]+")
_LINE = re.compile(r"[^\s{]+\s*(?:\{(.*)\})?\s*([^\s}]+)(?:\s+-?[0-9]+)?\s*")
"""Labels, value, and a time in milliseconds, which is that of the scrape where it is left out."""
_LABEL = re.compile(r'\s*([a-zA-Z_][a-zA-Z0-9_]*)\s*=\s*"((?:[^"\\]|\\.)*)"\s*(?:,|$)')
_ESCAPE = re.compile(r"\\(.)")
_ESCAPED = {"n": "\n", "\\": "\\", '"': '"'}


class ExpositionError(Exception):
    """It is no text that Prometheus could read; the message says where."""


def samples(text: str) -> Iterator[Sample]:
    """Those that are read of a server. Raises ExpositionError."""
    for number, line in enumerate(text.split("\n"), 1):
        name = _NAME.match(line)
        if name is None or name[0] not in SAMPLE_NAMES:
            continue
        found = _LINE.fullmatch(line)
        value = _number(found[2]) if found is not None else None
        labels = _labels(found[1] or "") if found is not None else None
        if value is None or labels is None:
            raise ExpositionError(f"its metrics cannot be read: line {number} is {line[:200]!r}")
        yield Sample(name[0], labels, value)


def _labels(text: str) -> Mapping[str, str] | None:
    """None where that is not what labels are."""
    found: dict[str, str] = {}
    end = 0
    while end < len(text):
        label = _LABEL.match(text, end)
        if label is None:
            return found if not text[end:].strip() else None
        value = label[2]
        found[label[1]] = _ESCAPE.sub(_unescaped, value) if "\\" in value else value
        end = label.end()
    return found


def _unescaped(match: re.Match[str]) -> str:
    """What no escape is known for stays as it is."""
    return _ESCAPED.get(match[1], match[0])


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
