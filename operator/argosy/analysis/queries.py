"""Queries of the pool's Prometheus: a single value, judged by conditions."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from argosy.api.model.rollout.analysis import Analysis, AnalysisQuery, AnalysisTemplate
from argosy.api.model.rollout.conditions import ResultCondition
from argosy.autoscaling.metrics.signals import PoolSignals
from argosy.rollout.verdict import Measurement, Outcome


@dataclass(frozen=True, slots=True)
class QueryResults:
    """The values of one member's queries, by the query's name, and why others have none."""

    values: Mapping[str, float] = field(default_factory=dict)
    errors: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, member: str, queries: Iterable[AnalysisQuery], signals: PoolSignals) -> "QueryResults":
        """Return those of a member, by its resource's name, in a reading of its pool."""
        keys = {query.name: (member, query_key(query.name)) for query in queries}
        return cls(
            {name: signals.queries[key] for name, key in keys.items() if key in signals.queries},
            {name: signals.query_errors[key] for name, key in keys.items() if key in signals.query_errors},
        )


def query_key(name: str) -> str:
    """Return the name that a query has among a member's, of which scaling has others."""
    return f"rollout/{name}"


def queries_of(analysis: Analysis, templates: Iterable[AnalysisTemplate]) -> tuple[AnalysisQuery, ...]:
    """Return the queries of a spec, and those of the template that it names. A query of the spec takes the place of the
    template's with the same name.
    """
    named = analysis.template_ref.name if analysis.template_ref is not None else None
    shared = next((template.queries for template in templates if template.name == named), ())
    own = {query.name for query in analysis.queries}
    return (*analysis.queries, *(query for query in shared if query.name not in own))


def missing_template(analysis: Analysis, templates: Iterable[AnalysisTemplate]) -> str:
    """Return why the template that a spec names is not applied; empty if it is."""
    named = analysis.template_ref.name if analysis.template_ref is not None else None
    declared = [template.name for template in templates]
    if named is None or named in declared:
        return ""
    there = ", ".join(declared) or "none"
    return f"analysis.templateRef {named!r} is not in the pool's spec.analysisTemplates (there: {there})"


def query_measurements(queries: Iterable[AnalysisQuery], results: QueryResults) -> Iterator[Measurement]:
    """Yield a measurement for each query."""
    for query in queries:
        value = results.values.get(query.name)
        limit = "; ".join(_conditions(query))
        if value is None:
            why = results.errors.get(query.name, "not queried yet")
            yield Measurement(query.name, None, limit, 0, _test(query), Outcome.ERROR, None, why)
        else:
            yield Measurement(query.name, value, limit, 1, _test(query), judged(query, value), None, f"{value:g}")


def _test(query: AnalysisQuery) -> str:
    return "query, dry run" if query.dry_run else "query"


def _conditions(query: AnalysisQuery) -> Iterator[str]:
    if query.success_condition is not None:
        yield f"succeeds if {query.success_condition}"
    if query.failure_condition is not None:
        yield f"fails if {query.failure_condition}"


def judged(query: AnalysisQuery, value: float) -> Outcome:
    """Return what a value says. With one condition, a value that does not meet it says the opposite."""
    success, failure = _holds(query.success_condition, value), _holds(query.failure_condition, value)
    if failure or (failure is None and success is False):
        return Outcome.FAILED
    if success or (success is None and failure is False):
        return Outcome.SUCCESSFUL
    return Outcome.INCONCLUSIVE


def _holds(condition: str | None, value: float) -> bool | None:
    return None if condition is None else ResultCondition.parse(condition).holds(value)
