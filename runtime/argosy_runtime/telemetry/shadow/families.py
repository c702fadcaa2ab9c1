"""Metrics of shadows (`argosy_shadow_*`), with the labels of the candidate's version."""

from collections.abc import Callable, Sequence
from typing import Final

from argosy_runtime.histograms import DurationHistogram
from argosy_runtime.telemetry.exposition import Family
from argosy_runtime.telemetry.series import ModelSeries

from .statistics import ShadowStatistics

_MOST: Final = 1e30
"""What an infinite difference is exposed as, so that those who add and compare have a number."""
_DURATIONS: Final[Sequence[tuple[str, str, Callable[[ShadowStatistics], DurationHistogram]]]] = (
    (
        "argosy_shadow_stable_duration_seconds",
        "Of requests that both versions answered, to the stable version's last response, without time in queues",
        lambda shadow: shadow.stable,
    ),
    (
        "argosy_shadow_candidate_duration_seconds",
        "Of requests that both versions answered, to the candidate's last response, without time in queues",
        lambda shadow: shadow.candidate,
    ),
    (
        "argosy_shadow_stable_first_response_seconds",
        "Of requests that both versions answered, to the stable version's first response, without time in queues",
        lambda shadow: shadow.stable_first,
    ),
    (
        "argosy_shadow_candidate_first_response_seconds",
        "Of requests that both versions answered, to the candidate's first response, without time in queues",
        lambda shadow: shadow.candidate_first,
    ),
)
_Shadows = Sequence[tuple[ModelSeries, ShadowStatistics]]


def shadow_families(models: Sequence[ModelSeries]) -> list[Family]:
    """Return the families of all versions that were a candidate of a shadow."""
    shadows = [(model, shadow) for model in models if (shadow := model.statistics.shadow) is not None]
    return [*_requests(shadows), *_durations(shadows), *_outputs(shadows), _examples(shadows), _positions(shadows)]


def _requests(shadows: _Shadows) -> list[Family]:
    outcomes = Family("argosy_shadow_requests_total", "Requests that were chosen for a shadow, by outcome", "counter")
    failures = Family("argosy_shadow_failures_total", "Copies that failed where the original did not", "counter")
    obstacles = Family(
        "argosy_shadow_uncompared_total", "Requests that were skipped, or not compared, by why", "counter"
    )
    calls = Family("argosy_shadow_calls_total", "Copies whose models called other models", "counter")
    for model, shadow in shadows:
        calls.add(model.labels, shadow.calls)
        for outcome, count in shadow.outcomes.items():
            outcomes.add({**model.labels, "outcome": outcome.value}, count)
        for reason, count in shadow.failures.items():
            failures.add({**model.labels, "reason": reason}, count)
        for obstacle, count in shadow.obstacles.items():
            obstacles.add({**model.labels, "reason": obstacle.value}, count)
    return [outcomes, failures, obstacles, calls]


def _durations(shadows: _Shadows) -> list[Family]:
    families = []
    for name, text, of in _DURATIONS:
        family = Family(name, text, "histogram")
        for model, shadow in shadows:
            family.add_histogram(model.labels, of(shadow))
        families.append(family)
    return families


def _outputs(shadows: _Shadows) -> list[Family]:
    different = Family("argosy_shadow_output_different_total", "Compared requests whose output differs", "counter")
    rows = Family("argosy_shadow_rows_total", "Rows whose largest elements were compared", "counter")
    agreeing = Family("argosy_shadow_rows_agreeing_total", "Rows with the same index of the largest element", "counter")
    largest = Family("argosy_shadow_difference_max", "Largest absolute difference of an output's numbers", "gauge")
    for model, shadow in shadows:
        for name, output in shadow.outputs.items():
            labels = {**model.labels, "output": name}
            different.add(labels, output.different)
            rows.add(labels, output.rows)
            agreeing.add(labels, output.agreeing)
            if output.largest is not None:
                largest.add(labels, min(output.largest, _MOST))
    return [different, rows, agreeing, largest]


def _examples(shadows: _Shadows) -> Family:
    family = Family("argosy_shadow_example", "Size of the difference of the answers that differ most", "gauge")
    for model, shadow in shadows:
        for name, output in shadow.outputs.items():
            for example in output.examples:
                labels = {
                    **model.labels,
                    "output": name,
                    "request_id": example.request_id,
                    "kind": example.difference.kind.value,
                }
                family.add(labels, min(example.difference.size, _MOST))
    return family


def _positions(shadows: _Shadows) -> Family:
    family = Family(
        "argosy_shadow_equal_prefix",
        "Generated answers that differ, by the characters or tokens before the first difference",
        "histogram",
    )
    for model, shadow in shadows:
        family.add_histogram(model.labels, shadow.positions)
    return family
