"""What a user should know of a rollout before its spec is acted upon: it is valid, and may not do what was meant."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain

from argosy.analysis.errors import error_test
from argosy.api import InferenceModel, Member, Resource, ServingPool
from argosy.api.model.rollout.analysis import OnInconclusive
from argosy.api.model.rollout.rollout import Rollout, Strategy
from argosy.api.values.identity import Identity
from argosy.planning.rollouts.member import is_staged
from argosy.planning.rollouts.revision import changed_fields, revision_of

_MANY = 100_000
"""Requests at one step beyond which few models have a verdict within half an hour."""
_RATIOS = (("service_time", "serviceTime"), ("p50", "p50"), ("p95", "p95"), ("p99", "p99"))


def advice_on_changes(resources: Iterable[Resource], before: Mapping[Identity, Resource]) -> list[str]:
    """Return a line for each sentence about resources whose spec is another one than `before`, by identity."""
    changed = [one for one in resources if one.identity not in before or before[one.identity].spec != one.spec]
    return [f"{one.identity}: {note}" for one in changed for note in rollout_advice(one, before.get(one.identity))]


def rollout_advice(member: Resource, before: Resource | None = None) -> list[str]:
    """Return what its rollout will do that may surprise, a sentence each. `before`: what is stored in its place."""
    if isinstance(member, ServingPool) or member.spec.rollout is None:
        return []
    rollout = member.spec.rollout
    return list(chain(_gap(member, rollout), _same_version(member, before), _analysis(rollout)))


def _gap(member: Member, rollout: Rollout) -> Iterator[str]:
    if rollout.strategy is Strategy.RECREATE and member.spec.fewest_replicas == 1:
        yield (
            "spec.rollout.strategy: Recreate unloads the only replica before its successor is loaded; until then "
            "requests fail, or wait where the pool has an activator; set minReplicas to 2, or Auto"
        )


def _same_version(member: Member, before: Resource | None) -> Iterator[str]:
    """Yield that a change without a new version is not acted upon."""
    if not isinstance(member, InferenceModel) or not isinstance(before, InferenceModel):
        return
    declared, stored = revision_of(member), revision_of(before)
    if is_staged(member.spec.rollout) and declared.version == stored.version and declared.name != stored.name:
        fields = ", ".join(changed_fields(before, member))
        yield (
            f"spec.version: is still {declared.version}, and spec.rollout proves new versions: if it serves, the "
            f"change of {fields} is not acted upon; raise it"
        )


def _analysis(rollout: Rollout) -> Iterator[str]:
    if not rollout.steps and rollout.shadow is None:
        return
    analysis = rollout.analysis
    for name, alias in _RATIOS:
        ratio = getattr(analysis.latency, name)
        if ratio is not None and ratio <= 1:
            yield (
                f"spec.rollout.analysis.latency.{alias}: is {ratio:g}, so that a version which is as fast as the "
                "stable one is taken back, or gets no verdict; set more than 1, such as 1.5"
            )
    needed = error_test(analysis).fewest_samples
    if needed > _MANY:
        yield (
            f"spec.rollout.analysis.errorRate: a step needs {needed} requests without a failure for a verdict, and "
            f"without one {_without_verdict(analysis.on_inconclusive)}; set the two rates further apart"
        )


def _without_verdict(choice: OnInconclusive) -> str:
    ends = {
        OnInconclusive.HOLD: "it stays where it is",
        OnInconclusive.ROLLBACK: "it is taken back at the timeout",
        OnInconclusive.PROMOTE: "it goes on without one at the timeout",
    }
    return ends[choice]
