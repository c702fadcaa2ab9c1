"""Metrics that models define for themselves."""

import weakref
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Any

from argosy_runtime.backends.contract import ActOnMetric, Host, MetricFamilySpec, check_labels
from argosy_runtime.errors import ServingError, invalid

from . import arguments, context
from .errors import TritonModelException
from .reaper import reaper

_CREATING = "Error when creating Metric: "


class MetricKind(Enum):
    """What a family's metrics are."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class Metric:
    """One metric of a family. It leaves /metrics when the model lets go of it."""

    def __init__(self, owner: context.ModelContext, family: MetricFamilySpec, labels: dict[str, str]) -> None:
        self._owner = owner
        self._family = family
        self._labels = labels
        self._act("create", 0.0, _CREATING)
        reaper.prepare()
        weakref.finalize(self, reaper.put, _ending(owner.host, family, labels, "remove")).atexit = False

    def increment(self, value: float) -> None:
        """Add `value`. Counters take no negative values, histograms none at all."""
        self._act("increment", value, "Failed to increment metric value: ")

    def set(self, value: float) -> None:
        """Set a gauge."""
        self._act("set", value, "Failed to set metric value: ")

    def observe(self, value: float) -> None:
        """Count `value` in a histogram."""
        self._act("observe", value, "Failed to observe metric value: ")

    def value(self) -> float:
        """Return the value of a counter or gauge."""
        return self._act("value", 0.0, "Failed to get metric value: ")

    def _act(self, action: str, value: float, failure: str) -> float:
        try:
            answer = next(self._owner.host.call(ActOnMetric(self._family, self._labels, action, float(value))))
            return answer if isinstance(answer, float) else 0.0
        except ServingError as error:
            raise TritonModelException(failure + self._owner.refusal(error)) from error


def _ending(host: Host, family: MetricFamilySpec, labels: dict[str, str], action: str) -> Callable[[], None]:
    def end() -> None:
        host.call(ActOnMetric(family, labels, action, 0.0))

    return end


def _word(value: object) -> str:
    """Return a label's name or value: bytes are text, all else as Python writes it."""
    return arguments.text("a label", value) if isinstance(value, bytes) else str(value)


class MetricFamily:
    """Metrics of one name and kind that differ in their labels."""

    COUNTER = MetricKind.COUNTER
    GAUGE = MetricKind.GAUGE
    HISTOGRAM = MetricKind.HISTOGRAM

    def __init__(self, name: str, description: str, kind: MetricKind) -> None:
        self._name = arguments.text("name", name)
        self._description = arguments.text("description", description)
        if not isinstance(kind, MetricKind):
            raise TypeError(f"kind must be one of MetricFamily's, not {kind!r}")
        self._kind = kind
        self._owner = context.current()
        spec = self._spec((), "Error when creating MetricFamily: ")
        host = self._owner.host
        if isinstance(host, context.NoHost):
            return
        try:
            next(host.call(ActOnMetric(spec, {}, "declare", 0.0)))
        except ServingError as error:
            raise TritonModelException(f"Error when creating MetricFamily: {self._owner.refusal(error)}") from error
        reaper.prepare()
        weakref.finalize(self, reaper.put, _ending(host, spec, {}, "drop")).atexit = False

    def Metric(  # noqa: N802 - Triton's name for it
        self, labels: Mapping[str, str] | None = None, buckets: Sequence[float] | None = None
    ) -> Metric:
        """Return the family's metric with these labels.

        A histogram needs `buckets` (upper bounds), the others refuse them.
        """
        if labels is not None and not isinstance(labels, Mapping):
            raise TritonModelException("Failed to create metric. Labels must be a dictionary.")
        spec = self._spec(self._bounds(buckets), _CREATING)
        named = {_word(key): _word(value) for key, value in (labels or {}).items()}
        try:
            check_labels(spec, named)
        except ValueError as error:
            raise self._refused(_CREATING, error) from None
        return Metric(self._owner, spec, named)

    def _spec(self, buckets: tuple[float, ...], failure: str) -> MetricFamilySpec:
        try:
            return MetricFamilySpec(self._name, self._description, self._kind.value, buckets)
        except ValueError as error:
            raise self._refused(failure, error) from None

    def _refused(self, failure: str, error: ValueError) -> TritonModelException:
        return TritonModelException(failure + self._owner.refusal(invalid(str(error))))

    def _bounds(self, buckets: Any) -> tuple[float, ...]:
        if buckets is None:
            if self._kind is MetricKind.HISTOGRAM:
                raise TritonModelException("Failed to create metric. Missing required buckets.")
            return ()
        if not isinstance(buckets, list):
            raise TritonModelException("Failed to create metric. Buckets must be a list.")
        if self._kind is not MetricKind.HISTOGRAM:
            raise TritonModelException("Failed to create metric. Unexpected buckets found.")
        return tuple(float(bound) for bound in buckets)
