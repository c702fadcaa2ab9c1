"""What a rollout asks of its pool that is not there, with the reason and the way out: queries, and weights.

NVIDIA's server serves the highest loaded version to every request that names none: it has no weights, no stickiness and
no mirroring. A switch of all requests of a model at once, by Surge or Recreate, and the analysis of its errors and by
queries are possible there. An ensemble has one configuration for all of its versions there, so that it is replaced.
"""

from collections.abc import Iterable, Iterator

from argosy.api import Ensemble, InferenceModel, ServingPool
from argosy.api.model.rollout.analysis import Analysis
from argosy.api.model.rollout.rollout import Rollout
from argosy.api.servingpool import RuntimeName
from argosy.api.values.base import ApiModel, Fault
from argosy.api.values.quantity import format_percent
from argosy_common.wording import did_you_mean

ALL = 1000
"""All traffic, in thousandths."""
_WHY = "NVIDIA's server of pool {pool!r} {cannot}: {way_out}, or use a pool with runtime.name argosy"


def check_rollouts(
    pool: ServingPool, members: Iterable[InferenceModel | Ensemble]
) -> Iterator[tuple[InferenceModel | Ensemble, Fault]]:
    """Yield the fields of members' rollouts that the pool cannot carry out."""
    for member in members:
        rollout = member.spec.rollout
        if rollout is not None:
            yield from ((member, fault) for fault in _queries(pool, rollout.analysis))
            if pool.spec.runtime.name is not RuntimeName.ARGOSY:
                yield from ((member, fault) for fault in _weights(pool, member, rollout))


def _queries(pool: ServingPool, analysis: Analysis) -> Iterator[Fault]:
    """Yield queries without a Prometheus, and a template that the pool does not have."""
    path, reference = ("spec", "rollout", "analysis"), analysis.template_ref
    if pool.spec.monitoring.prometheus is None:
        message = f"pool {pool.name!r} names no Prometheus to ask: set its spec.monitoring.prometheus, or leave"
        if analysis.queries:
            yield Fault(f"{message} the queries out", (*path, "queries"))
        if reference is not None:
            yield Fault(f"{message} the template out", (*path, "templateRef"))
    names = [template.name for template in pool.spec.analysis_templates]
    if reference is not None and reference.name not in names:
        hint = did_you_mean(reference.name, names) or "; add it there, or leave this out"
        message = f"pool {pool.name!r} has no {reference.name!r} in its spec.analysisTemplates{hint}"
        yield Fault(message, (*path, "templateRef", "name"))


def _weights(pool: ServingPool, member: InferenceModel | Ensemble, rollout: Rollout) -> Iterator[Fault]:
    if isinstance(member, Ensemble):
        for field in sorted(_declared(rollout) - {"strategy"}):
            yield _fault(pool, "replaces an ensemble, whose versions share one configuration", "leave it out", field)
        return
    for index, step in enumerate(rollout.steps):
        if step.traffic < ALL:
            cannot = f"has no weights, by which a version would get {format_percent(step.traffic)}"
            way_out = 'leave it out, and write one step of "100%" for the analysis of a switch of all traffic'
            yield _fault(pool, cannot, way_out, "steps", index, "traffic")
    if rollout.shadow is not None:
        yield _fault(pool, "mirrors no requests", "leave it out", "shadow")
    if "latency" in _declared(rollout.analysis):
        cannot = "counts no durations in histograms, by which versions could be compared"
        yield _fault(pool, cannot, "leave it out, and use analysis.queries", "analysis", "latency")
    if rollout.sticky:
        yield _fault(pool, "sends requests to the highest version, whatever their key", "leave it out", "sticky")


def _declared(part: ApiModel) -> set[str]:
    """Return the fields whose values are not the defaults, which an API server fills in."""
    default = type(part)()
    return {name for name in type(part).model_fields if getattr(part, name) != getattr(default, name)}


def _fault(pool: ServingPool, cannot: str, way_out: str, *path: str | int) -> Fault:
    return Fault(_WHY.format(pool=pool.name, cannot=cannot, way_out=way_out), ("spec", "rollout", *path))
