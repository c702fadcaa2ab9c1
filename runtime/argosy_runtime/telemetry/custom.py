"""Metrics that models define for themselves (`pb_utils.MetricFamily`)."""

from bisect import bisect_left
from dataclasses import dataclass, field

from argosy_runtime.backends.contract import MetricFamilySpec
from argosy_runtime.errors import ServingError, invalid, not_found

from .exposition import Family, bound_texts

Labels = tuple[tuple[str, str], ...]


@dataclass(slots=True)
class _Metric:
    """One labelled metric; `counts` per bucket, the last for +Inf."""

    value: float = 0.0
    counts: list[int] = field(default_factory=list)


class CustomMetrics:
    """Families by name; each acted upon from any model through its host."""

    def __init__(self) -> None:
        self._families: dict[str, tuple[MetricFamilySpec, dict[Labels, _Metric]]] = {}

    def act(self, family: MetricFamilySpec, labels: dict[str, str], action: str, value: float) -> float:
        """Do `action` (create, increment, set, observe, value, remove) and return the metric's value."""
        spec, metrics = self._families.setdefault(family.name, (family, {}))
        if spec.kind != family.kind:
            raise invalid(f"metric family '{family.name}' is already registered as a {spec.kind}")
        key = tuple(sorted(labels.items()))
        if action == "create":
            metrics.setdefault(key, _Metric(counts=[0] * (len(family.buckets) + 1)))
        elif action == "remove":
            metrics.pop(key, None)
            return 0.0
        metric = metrics.get(key)
        if metric is None:
            raise not_found(f"metric family '{family.name}' has no metric with labels {labels}")
        self._change(spec, metric, action, value)
        return metric.value

    def _change(self, spec: MetricFamilySpec, metric: _Metric, action: str, value: float) -> None:
        if action == "observe" and spec.kind == "histogram":
            metric.value += value
            metric.counts[bisect_left(spec.buckets, value)] += 1
        elif action == "increment" and spec.kind != "histogram":
            if spec.kind == "counter" and value < 0:
                raise invalid("counter metrics can only be incremented monotonically by non-negative values")
            metric.value += value
        elif action == "set" and spec.kind == "gauge":
            metric.value = value
        elif action not in ("create", "value"):
            raise _unsupported(spec, action)

    def families(self) -> list[Family]:
        """All of them, to be written out."""
        return [self._family(spec, metrics) for spec, metrics in self._families.values()]

    def _family(self, spec: MetricFamilySpec, metrics: dict[Labels, _Metric]) -> Family:
        family = Family(spec.name, spec.description, spec.kind)
        for key, metric in metrics.items():
            labels = dict(key)
            if spec.kind != "histogram":
                family.add(labels, metric.value)
            else:
                family.add_buckets(labels, bound_texts(spec.buckets), metric.counts, metric.value)
        return family


def _unsupported(spec: MetricFamilySpec, action: str) -> ServingError:
    return invalid(f"metric family '{spec.name}' is a {spec.kind}, which has no {action}")
