"""The text of a server's /metrics, to samples."""

from collections.abc import Iterator

from prometheus_client.parser import text_string_to_metric_families

from argosy.fleet.signals.metricnames import SAMPLE_NAMES
from argosy.fleet.signals.samples import Sample

_ENDS = ("{", " ", "\t")


class ExpositionError(Exception):
    """It is no text that Prometheus could read; the message says where."""


def samples(text: str) -> Iterator[Sample]:
    """Those that are read of a server; lines of other metrics are not even parsed. Raises ExpositionError."""
    # Without the comments each metric is untyped, so that the parser leaves Triton's counters without `_total` alone.
    wanted = "".join(f"{line}\n" for line in text.split("\n") if _name(line) in SAMPLE_NAMES)
    try:
        for family in text_string_to_metric_families(wanted):
            for sample in family.samples:
                yield Sample(sample.name, sample.labels, float(sample.value))
    except (ValueError, IndexError, KeyError) as error:
        raise ExpositionError(f"its metrics cannot be read: {error}") from error


def _name(line: str) -> str:
    for end in _ENDS:
        line = line.partition(end)[0]
    return line
