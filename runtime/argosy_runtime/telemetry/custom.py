"""Metrics that models define for themselves (`pb_utils.MetricFamily`), and the instances that own them.

A metric is exposed while an instance of a model owns it. The counts of a counter or a histogram are kept beyond that,
because its owner may be loaded again, and a count must not decrease while the server runs.
"""

from bisect import bisect_left
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final

from argosy_runtime.backends.contract import MetricFamilySpec, check_labels
from argosy_runtime.errors import invalid, not_found, unsupported
from argosy_runtime.fifo_cache import FifoCache

from .exposition import Family, bound_texts

Labels = tuple[tuple[str, str], ...]

# Metrics without an owner that keep their values, the newest.
UNOWNED: Final = 4096


@dataclass(slots=True)
class _Metric:
    """One labelled metric. `counts` per bucket, the last for +Inf; `owners`: how often each instance created it."""

    buckets: tuple[float, ...]
    value: float = 0.0
    counts: list[int] = field(default_factory=list)
    owners: dict[int, int] = field(default_factory=dict)


@dataclass(slots=True)
class _Family:
    """One family. `metrics` by labels; `owners`: how often each instance declared it."""

    spec: MetricFamilySpec
    metrics: dict[Labels, _Metric] = field(default_factory=dict)
    owners: dict[int, int] = field(default_factory=dict)

    @property
    def is_exposed(self) -> bool:
        """Whether any of its metrics is exposed."""
        return any(metric.owners for metric in self.metrics.values())


class CustomMetrics:
    """Families by name, which models change through their hosts. `reserved`: the server's own families."""

    def __init__(self, reserved: Collection[str] = ()) -> None:
        self._reserved = frozenset(reserved)
        self._families: dict[str, _Family] = {}
        self._unowned = FifoCache[tuple[str, Labels], None](UNOWNED)

    def act(self, owner: int, family: MetricFamilySpec, labels: Mapping[str, str], action: str, value: float) -> float:
        """Do `action` for an instance: declare or drop a family; create, increment, set, observe or remove a metric.

        Return the metric's value, which is all that the action `value` does. Raises ServingError.
        """
        if action in ("declare", "drop"):
            self._declare(owner, family, 1 if action == "declare" else -1)
            return 0.0
        key = tuple(sorted(labels.items()))
        if action == "remove":
            self._remove(owner, family.name, key)
            return 0.0
        if action == "create":
            return self._create(owner, family, labels, key).value
        registered = self._families.get(family.name)
        metric = registered.metrics.get(key) if registered is not None else None
        if registered is None or metric is None or owner not in metric.owners:
            raise not_found(f"metric family '{family.name}' has no metric with labels {dict(labels)}")
        self._change(registered.spec, metric, action, value)
        return metric.value

    def samples(self, name: str) -> list[tuple[Mapping[str, str], float]]:
        """Return labels and values of a family's metrics that have an owner; none where there is no such family."""
        family = self._families.get(name)
        metrics = {} if family is None else family.metrics
        return [(dict(labels), metric.value) for labels, metric in metrics.items() if metric.owners]

    def forget(self, owner: int) -> None:
        """Remove an instance from the owners of its metrics."""
        for name, family in list(self._families.items()):
            family.owners.pop(owner, None)
            for key, metric in list(family.metrics.items()):
                if metric.owners.pop(owner, 0) and not metric.owners:
                    self._release(name, key)
            self._tidy(name)

    def _declare(self, owner: int, spec: MetricFamilySpec, more: int) -> None:
        """Change how often an instance has declared a family, by one."""
        family = self._registered(spec) if more > 0 else self._families.get(spec.name)
        if family is None:
            return
        family.owners[owner] = family.owners.get(owner, 0) + more
        if family.owners[owner] <= 0:
            del family.owners[owner]
            self._tidy(spec.name)

    def _registered(self, spec: MetricFamilySpec) -> _Family:
        """Return a family, new or of the same kind. One that nothing owns may become one of another kind."""
        if spec.name in self._reserved:
            raise invalid(f"metric family '{spec.name}' is one of the server's own")
        family = self._families.get(spec.name)
        if family is None or (family.spec.kind != spec.kind and not (family.owners or family.is_exposed)):
            family = self._families[spec.name] = _Family(spec)
        if family.spec.kind != spec.kind:
            raise invalid("Family name already exists with different type")
        return family

    def _tidy(self, name: str) -> None:
        """Drop a family that has nothing left."""
        family = self._families.get(name)
        if family is not None and not (family.metrics or family.owners):
            del self._families[name]

    def _create(self, owner: int, family: MetricFamilySpec, labels: Mapping[str, str], key: Labels) -> _Metric:
        try:
            check_labels(family, labels)
        except ValueError as error:
            raise invalid(str(error)) from None
        registered = self._registered(family)
        metric = registered.metrics.get(key)
        if metric is None or (metric.buckets != family.buckets and not metric.owners):
            metric = registered.metrics[key] = _Metric(family.buckets, counts=[0] * (len(family.buckets) + 1))
        metric.owners[owner] = metric.owners.get(owner, 0) + 1
        self._unowned.remove((family.name, key))
        return metric

    def _remove(self, owner: int, name: str, key: Labels) -> None:
        family = self._families.get(name)
        metric = family.metrics.get(key) if family is not None else None
        if metric is None or owner not in metric.owners:
            return
        metric.owners[owner] -= 1
        if not metric.owners[owner]:
            del metric.owners[owner]
        if not metric.owners:
            self._release(name, key)

    def _release(self, name: str, key: Labels) -> None:
        """Drop a gauge that has lost its last owner; keep other metrics until there are too many."""
        family = self._families[name]
        if family.spec.kind == "gauge":
            self._drop(name, key)
            return
        evicted = self._unowned.put((name, key), None)
        if evicted is not None:
            self._drop(*evicted[0])

    def _drop(self, name: str, key: Labels) -> None:
        family = self._families.get(name)
        if family is None or key not in family.metrics or family.metrics[key].owners:
            return
        del family.metrics[key]
        self._tidy(name)

    def _change(self, spec: MetricFamilySpec, metric: _Metric, action: str, value: float) -> None:
        if action == "observe" and spec.kind == "histogram":
            metric.value += value
            metric.counts[bisect_left(metric.buckets, value)] += 1
        elif action == "increment" and spec.kind != "histogram":
            if spec.kind == "counter" and not value >= 0:
                raise invalid(f"{_kind(spec)} can only be incremented monotonically by non-negative values.")
            metric.value += value
        elif action == "set" and spec.kind == "gauge":
            metric.value = value
        elif action != "value" or spec.kind == "histogram":
            raise unsupported(f"{_kind(spec)} does not support {action.capitalize()}")

    def families(self) -> list[Family]:
        """Return the families that have a metric with an owner."""
        return [_written(family) for family in self._families.values() if family.is_exposed]


def _written(family: _Family) -> Family:
    spec = family.spec
    written = Family(spec.name, spec.description, spec.kind)
    for key, metric in family.metrics.items():
        if not metric.owners:
            continue
        labels = dict(key)
        if spec.kind != "histogram":
            written.add(labels, metric.value)
        else:
            written.add_buckets(labels, bound_texts(metric.buckets), metric.counts, metric.value)
    return written


def _kind(spec: MetricFamilySpec) -> str:
    return f"TRITONSERVER_METRIC_KIND_{spec.kind.upper()}"
