"""What a rollout asks of servers that NVIDIA's server cannot do, with the reason and the way out.

It serves the highest loaded version to every request that names none: there are no weights, no stickiness and no
mirroring. A switch of all requests of a model at once, by Surge or Recreate, and the analysis of its errors and by
queries are possible there. An ensemble has one configuration for all of its versions there, so that it is replaced.
"""

from collections.abc import Iterable, Iterator

from argosy.api import Ensemble, InferenceModel, ServingPool
from argosy.api.servingpool import RuntimeName
from argosy.api.values.base import Fault
from argosy.api.values.quantity import format_percent

ALL = 1000
"""All traffic, in thousandths."""
_WHY = "NVIDIA's server of pool {pool!r} {cannot}: {way_out}, or use a pool with runtime.name argosy"


def check_rollouts(
    pool: ServingPool, members: Iterable[InferenceModel | Ensemble]
) -> Iterator[tuple[InferenceModel | Ensemble, Fault]]:
    """Yield the fields of members' rollouts that the pool's server cannot carry out."""
    if pool.spec.runtime.name is RuntimeName.ARGOSY:
        return
    for member in members:
        yield from ((member, fault) for fault in _faults(pool, member))


def _faults(pool: ServingPool, member: InferenceModel | Ensemble) -> Iterator[Fault]:
    rollout = member.spec.rollout
    if rollout is None:
        return
    if isinstance(member, Ensemble):
        for field in sorted(rollout.model_fields_set - {"strategy"}):
            yield _fault(pool, "replaces an ensemble, whose versions share one configuration", "leave it out", field)
        return
    for index, step in enumerate(rollout.steps):
        if step.traffic < ALL:
            cannot = f"has no weights, by which a version would get {format_percent(step.traffic)}"
            way_out = 'leave it out, and write one step of "100%" for the analysis of a switch of all traffic'
            yield _fault(pool, cannot, way_out, "steps", index, "traffic")
    if rollout.shadow is not None:
        yield _fault(pool, "mirrors no requests", "leave it out", "shadow")
    if "latency" in rollout.analysis.model_fields_set:
        cannot = "counts no durations in histograms, by which versions could be compared"
        yield _fault(pool, cannot, "leave it out, and use analysis.queries", "analysis", "latency")
    if rollout.sticky:
        yield _fault(pool, "sends requests to the highest version, whatever their key", "leave it out", "sticky")


def _fault(pool: ServingPool, cannot: str, way_out: str, *path: str | int) -> Fault:
    return Fault(_WHY.format(pool=pool.name, cannot=cannot, way_out=way_out), ("spec", "rollout", *path))
