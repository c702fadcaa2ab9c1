"""Queries of Prometheus, and the meaning of its answers. Pure."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import ceil, isfinite
from typing import Any

from argosy.autoscaling.metrics.windows import Exposed

from .samples import SAMPLE_NAMES, Sample, exposed
from .targets import PoolTargets, Query

_VARIABLE = re.compile(r"\$\(([^)]*)\)")
_NAMES = "|".join(sorted(SAMPLE_NAMES))
_TARGET_LABELS = ("job", "instance", "container", "endpoint")


class AnswerError(Exception):
    """An answer does not fit its query; the message says how."""


def series_query(namespace: str, pods: Iterable[str], span_s: float) -> str:
    """Return all samples of these Pods' servers in the last `span_s` seconds, each at the time that it was scraped."""
    named = "|".join(re.escape(pod).replace("\\", "\\\\") for pod in pods)
    return f'{{__name__=~"{_NAMES}",namespace="{namespace}",pod=~"{named}"}}[{max(1, ceil(span_s))}s]'


def newest_query(namespace: str) -> str:
    """Return when the newest sample of any server in the namespace was scraped, within two hours."""
    times = f'timestamp(nv_inference_request_success{{namespace="{namespace}"}})'
    return f"max({times}) or max(max_over_time({times}[2h:1m]))"


ANY_QUERY = "count(nv_inference_request_success)"
"""How many models' servers are scraped at all."""


def filled_in(query: Query, pool: PoolTargets) -> str:
    """Return a query with its variables; `$(model)` is the name that servers' metrics have."""
    values = {
        "namespace": pool.pool.namespace,
        "pool": pool.pool.name,
        "model": pool.served_names.get(query.member, query.member),
    }
    return _VARIABLE.sub(lambda match: values.get(match[1], match[0]), query.text)


def readings(answer: Sequence[Mapping[str, Any]]) -> dict[str, list[Exposed]]:
    """Return what Pods exposed at each time, oldest first. Raises AnswerError.

    All samples of one scrape have its time, by which they are grouped. If two jobs scrape one Pod, the one that reads
    more of it counts.
    """
    scraped: dict[str, dict[tuple[str, ...], dict[float, list[Sample]]]] = {}
    try:
        for series in answer:
            labels, values = _labels(series["metric"]), series["values"]
            target = tuple(labels.get(label, "") for label in _TARGET_LABELS)
            scrapes = scraped.setdefault(labels["pod"], {}).setdefault(target, {})
            name = labels["__name__"]
            for at, value in values:
                scrapes.setdefault(_finite(at), []).append(Sample(name, labels, float(value)))
            if not values:
                raise ValueError("a series without samples")
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise AnswerError(f"what it answers is no range of samples ({type(error).__name__}: {error})") from error
    return {pod: [exposed(of, at) for at, of in sorted(_fullest(targets).items())] for pod, targets in scraped.items()}


def _labels(metric: Mapping[str, Any]) -> Mapping[str, str]:
    """Return the labels of a series. Raises ValueError if a value is no text."""
    for label, value in metric.items():
        if not isinstance(value, str):
            raise ValueError(f"label {label} is {value!r}")
    return metric


def _finite(at: Any) -> float:
    """Return the time of a sample. Raises ValueError if it is none."""
    seconds = float(at)
    if not isfinite(seconds):
        raise ValueError(f"a sample's time is {seconds}")
    return seconds


def _fullest(targets: Mapping[tuple[str, ...], dict[float, list[Sample]]]) -> dict[float, list[Sample]]:
    return max(targets.values(), key=lambda scrapes: max(map(len, scrapes.values())))


def only_value(answer: Any) -> float:
    """Return the value of a scalar, or of a vector with one element. Raises AnswerError for any other answer."""
    try:
        values = [answer] if _is_pair(answer) else [element["value"] for element in answer]
        numbers = [float(value) for _, value in values]
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise AnswerError("it answers no number; ask for a scalar or an instant vector") from error
    if not numbers:
        raise AnswerError("nothing has such a metric now: the answer is empty")
    if len(numbers) > 1:
        raise AnswerError(f"it answers {len(numbers)} values where one is needed; aggregate them, as sum(...) does")
    if not isfinite(numbers[0]):
        raise AnswerError(f"its value is {numbers[0]}")
    return numbers[0]


def _is_pair(answer: Any) -> bool:
    return isinstance(answer, list) and len(answer) == 2 and isinstance(answer[0], int | float)


def batches(pods: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    """Yield the Pods in batches of limited size."""
    for start in range(0, len(pods), size):
        yield pods[start : start + size]
