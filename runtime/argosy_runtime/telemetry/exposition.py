"""Metric families and Prometheus' text format.

Triton's counters carry no `_total`, which every Prometheus client library would append; so the text is written here.
Format: https://prometheus.io/docs/instrumenting/exposition_formats/ (version 0.0.4).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


@dataclass(slots=True)
class Sample:
    """One value; `suffix` is appended to the family's name (`_bucket`, `_sum`, `_count`)."""

    labels: Mapping[str, str]
    value: float
    suffix: str = ""


@dataclass(slots=True)
class Family:
    """A metric: `kind` is counter, gauge or histogram."""

    name: str
    help: str
    kind: str
    samples: list[Sample] = field(default_factory=list)

    def add(self, labels: Mapping[str, str], value: float, suffix: str = "") -> None:
        """Append a sample."""
        self.samples.append(Sample(labels, value, suffix))


def exposition(families: Iterable[Family]) -> bytes:
    """The text a scraper reads."""
    lines: list[str] = []
    for family in families:
        lines.append(f"# HELP {family.name} {_escape_help(family.help)}")
        lines.append(f"# TYPE {family.name} {family.kind}")
        lines += [_line(family.name, sample) for sample in family.samples]
    return ("\n".join(lines) + "\n").encode()


def _line(name: str, sample: Sample) -> str:
    labels = ",".join(f'{key}="{_escape_label(value)}"' for key, value in sample.labels.items())
    return f"{name}{sample.suffix}{{{labels}}} {_number(sample.value)}"


def _number(value: float) -> str:
    if isinstance(value, int) or value.is_integer():
        return str(int(value))
    return repr(float(value))


def _escape_help(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n")


def _escape_label(text: str) -> str:
    return _escape_help(text).replace('"', r"\"")
