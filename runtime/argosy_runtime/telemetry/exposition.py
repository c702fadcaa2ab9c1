"""Metric families and Prometheus' text format.

Triton's counters carry no `_total`, which every Prometheus client library would append; so the text is written here.
Format: https://prometheus.io/docs/instrumenting/exposition_formats/ (version 0.0.4).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from math import isnan
from typing import Final

from argosy_runtime.histograms import DURATION_BOUNDS, TOKEN_BOUNDS, DurationHistogram, TokenHistogram

_NS: Final = 1e9


class Labels(dict[str, str]):
    """Labels that many families share: their text is made once, so they must not be changed."""

    @cached_property
    def text(self) -> str:
        """The text between the braces."""
        return _text(self)


@dataclass(slots=True)
class Sample:
    """One value."""

    labels: Mapping[str, str]
    value: float

    def lines(self, name: str) -> list[str]:
        """Return the sample's line."""
        return [f"{name}{_braced(_labels(self.labels))} {_number(self.value)}"]


@dataclass(slots=True)
class Buckets:
    """A histogram's values: how many fell into each bucket alone, the last being above all `bounds`, and their sum.

    `bounds` as `bound_texts` makes them.
    """

    labels: Mapping[str, str]
    bounds: Sequence[str]
    counts: Sequence[int]
    sum: float

    def lines(self, name: str) -> list[str]:
        """Return the lines: each bucket with those below it, then the sum and the count."""
        labels = _labels(self.labels)
        before = f'{name}_bucket{{{labels},le="' if labels else f'{name}_bucket{{le="'
        total = sum(self.counts)
        if total:
            below = accumulate(self.counts)
            lines = [f'{before}{bound}"}} {count}' for bound, count in zip(self.bounds, below, strict=True)]
        else:
            # Of a thousand models most are idle, and this is all of their text.
            lines = [before + f'"}} 0\n{before}'.join(self.bounds) + '"} 0']
        braced = _braced(labels)
        return [*lines, f"{name}_sum{braced} {_number(self.sum)}", f"{name}_count{braced} {total}"]


@dataclass(slots=True)
class Summary:
    """A summary's values: quantiles by their texts, NaN where there was nothing lately, and the sum and the count."""

    labels: Mapping[str, str]
    quantiles: Sequence[tuple[str, float]]
    sum: float
    count: int

    def lines(self, name: str) -> list[str]:
        """Return the lines: the count and the sum, then each quantile."""
        labels = _labels(self.labels)
        braced = _braced(labels)
        before = f'{name}{{{labels},quantile="' if labels else f'{name}{{quantile="'
        lines = [f"{name}_count{braced} {self.count}", f"{name}_sum{braced} {_number(self.sum)}"]
        return [*lines, *[f'{before}{quantile}"}} {_number(value)}' for quantile, value in self.quantiles]]


@dataclass(slots=True)
class Family:
    """A metric: `kind` is counter, gauge, histogram, which alone has `Buckets`, or summary."""

    name: str
    help: str
    kind: str
    samples: list[Sample | Buckets | Summary] = field(default_factory=list)

    def add(self, labels: Mapping[str, str], value: float) -> None:
        """Append a sample."""
        self.samples.append(Sample(labels, value))

    def add_buckets(
        self, labels: Mapping[str, str], bounds: Sequence[str], counts: Sequence[int], total: float
    ) -> None:
        """Append a histogram's values: as `Buckets`, with `total` as their sum."""
        self.samples.append(Buckets(labels, bounds, counts, total))

    def add_summary(
        self, labels: Mapping[str, str], quantiles: Sequence[tuple[str, float]], total: float, count: int
    ) -> None:
        """Append a summary's values: as `Summary`, with `total` as their sum."""
        self.samples.append(Summary(labels, quantiles, total, count))

    def add_histogram(self, labels: Mapping[str, str], histogram: DurationHistogram | TokenHistogram) -> None:
        """Append a histogram of durations, in seconds, or of tokens."""
        if isinstance(histogram, TokenHistogram):
            self.add_buckets(labels, _TOKENS, histogram.counts, histogram.total)
        else:
            self.add_buckets(labels, _SECONDS, histogram.counts, histogram.ns / _NS)


def exposition(families: Iterable[Family]) -> bytes:
    """Return the text a scraper reads."""
    text: list[str] = []
    for family in families:
        text += head(family)
        text += lines(family)
    return ("\n".join(text) + "\n").encode()


def head(family: Family) -> list[str]:
    """Return the lines before its samples."""
    return [f"# HELP {family.name} {_escape_help(family.help)}", f"# TYPE {family.name} {family.kind}"]


def lines(family: Family) -> list[str]:
    """Return the lines of its samples."""
    return [line for sample in family.samples for line in sample.lines(family.name)]


def bound_texts(bounds: Iterable[float]) -> tuple[str, ...]:
    """Return the upper bounds of buckets as text, and +Inf."""
    return (*[f"{bound:.12g}" for bound in bounds], "+Inf")


def _braced(labels: str) -> str:
    return f"{{{labels}}}" if labels else ""


def _labels(labels: Mapping[str, str]) -> str:
    return labels.text if isinstance(labels, Labels) else _text(labels)


def _text(labels: Mapping[str, str]) -> str:
    return ",".join([f'{key}="{_escape_label(value)}"' for key, value in labels.items()])


def _number(value: float) -> str:
    if isinstance(value, int) or value.is_integer():
        return str(int(value))
    return "NaN" if isnan(value) else repr(float(value))


def _escape_help(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n")


def _escape_label(text: str) -> str:
    return _escape_help(text).replace('"', r"\"")


_SECONDS: Final = bound_texts([bound / _NS for bound in DURATION_BOUNDS])
_TOKENS: Final = bound_texts(TOKEN_BOUNDS)
