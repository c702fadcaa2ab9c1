"""What one round does with the revisions of a model or an ensemble."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TypeGuard

from argosy.api import Ensemble, InferenceModel, Member, Resource
from argosy.api.model.rollout.rollout import Rollout
from argosy.api.values.quantity import THOUSANDTHS
from argosy.api.values.versions import VersionPolicy
from argosy.planning.rollouts.member_revisions import MemberRevisions
from argosy.planning.rollouts.memory import SpecsByRevision
from argosy.planning.rollouts.strategy import ChosenStrategy, RolloutStrategy
from argosy.rollout.state import ALL_TRAFFIC, PROVING, Action, Ending, Phase, RolloutState


def is_staged(settings: Rollout | None) -> bool:
    """Return whether a new version is to be proven: steps or mirroring are declared."""
    return settings is not None and settings.proves


def takes_part(member: Resource) -> TypeGuard[Member]:
    """Return whether it may have a rollout: a model by itself, of which a new version is proven, or any ensemble, since
    others that run it may prove its revisions.
    """
    if type(member) is InferenceModel:
        return is_staged(member.spec.rollout)
    return type(member) is Ensemble


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberRollout:
    """What one round does with the revisions of a member that it knows.

    `stable` and `candidate`: their specs, with the declared fields that are no part of a revision. `candidate` is None
    where the stable revision is the only one, and `stable` is the declared one before any is stable. `state` and
    `action` are the machine's. `undivided`: the servers that do not divide requests as desired yet. Nothing else
    changes there before: an agent waits until a version is idle before it unloads it, and files come slowly.
    `traffic`: the candidate's share of the requests without a version, as measured in the present step. `chosen`: the
    strategy by which the candidate replaces the stable revision, once it is chosen. `former_failures`: messages of
    failures that the candidate did not cause.
    """

    revisions: MemberRevisions
    stable: Member
    candidate: Member | None
    state: RolloutState
    action: Action
    undivided: frozenset[str] = frozenset()
    traffic: float | None = None
    chosen: ChosenStrategy | None = None
    former_failures: frozenset[str] = frozenset()

    @property
    def declared(self) -> Member:
        """The resource as it is declared."""
        return self.revisions.resource

    @property
    def uniform(self) -> bool:
        """Whether it is the same on all servers, as ensembles and what they run are."""
        return self.revisions.uniform

    @property
    def is_proving(self) -> bool:
        """Whether there is a candidate that may be promoted."""
        return self.candidate is not None and self.state.phase in PROVING

    @property
    def further_replicas(self) -> int:
        """Replicas that it has in addition while its candidate is proven."""
        return self.chosen.further_replicas if self.chosen is not None and self.is_proving else 0

    @property
    def by_replicas(self) -> bool:
        """Whether some servers have the candidate and the others the stable revision: replicas divide requests."""
        if self.candidate is None or self.chosen is None or self.uniform or not self.acts_on_stable:
            return False
        return self.chosen.divides_replicas(self.declared.spec.fewest_replicas)

    @property
    def candidate_share(self) -> int:
        """The candidate's share of the servers, in thousandths, where they have one revision each: while it loads, that
        of its first step.
        """
        state = self.state
        if state.candidate is None or state.phase not in PROVING:
            return 0
        if state.phase is Phase.LOADING:
            return _first_share(self.settings)
        return self.action.weights.get(state.candidate.version, 0) * THOUSANDTHS // ALL_TRAFFIC

    @property
    def recreates(self) -> bool:
        """Whether the stable revision is unloaded before the candidate is loaded, though nothing else serves."""
        return self.chosen is not None and self.chosen.strategy is RolloutStrategy.RECREATE

    @property
    def settings(self) -> Rollout | None:
        """The rollout as declared."""
        return self.declared.spec.rollout

    @property
    def acts_on_stable(self) -> bool:
        """Whether servers are planned with the stable spec: while both are loaded, the candidate is one more version
        there, so that a failure of it leaves everything else as it is.
        """
        stable = self.state.stable
        return stable is not None and stable.version in self.action.keep

    @property
    def acted_upon(self) -> Member:
        """The spec that servers are planned with."""
        return self.stable if self.acts_on_stable or self.candidate is None else self.candidate

    @property
    def in_use(self) -> frozenset[str]:
        """The names of the revisions that are served or tried, and of the one that served before, as recorded."""
        return self.revisions.recorded((self.state.stable, self.state.candidate, self.state.former))

    @property
    def records(self) -> SpecsByRevision:
        """The specs that later rounds may need, by the names under which they are recorded."""
        return self.revisions.retained(self.in_use, self.good)

    @property
    def good(self) -> frozenset[str]:
        """The names of the revisions that were promoted, as they are recorded."""
        return self.revisions.recorded(
            record.revision for record in self.state.history if record.outcome is Ending.PROMOTED
        )

    @property
    def failed(self) -> frozenset[int]:
        """The versions that no server is to have: those of revisions that failed, and are neither served nor tried."""
        failed = {failed.revision.version for failed in self.state.failed}
        return frozenset(failed - self.action.keep)

    @property
    def specs(self) -> Mapping[int, Member]:
        """The spec of each version that one of the revisions declares; of both the stable one's."""
        versions = dict.fromkeys(_versions(self.candidate), self.candidate) if self.candidate else {}
        return {**versions, **dict.fromkeys(_versions(self.stable), self.stable)}

    def retained(self, declared: Collection[int], available: Collection[int]) -> set[int]:
        """Return which of the `available` versions a server is to have: those `declared` by the spec that is acted
        upon, those that the machine keeps, and as many former ones as the version policy says.

        A former version may be above the declared ones: weights decide which version answers.
        """
        desired = {*declared, *self.action.keep} & {*available, *declared}
        others = sorted(set(available) - desired - self.failed, reverse=True)
        policy = self._policy
        if policy is None:
            return desired
        if policy.specific is not None:
            return desired | (set(others) & set(policy.specific.versions))
        if policy.latest is not None:
            return desired | set(others[: max(0, policy.latest.num_versions - len(desired))])
        return desired | set(others)

    @property
    def _policy(self) -> VersionPolicy | None:
        return self.stable.spec.version_policy if isinstance(self.stable, InferenceModel) else None


def _first_share(settings: Rollout | None) -> int:
    """Return the share of the first step, or that of mirroring, which one step has where no server has both revisions;
    all without either.
    """
    if settings is not None and settings.steps:
        return settings.steps[0].traffic
    return settings.shadow.traffic if settings is not None and settings.shadow is not None else THOUSANDTHS


def _versions(member: Member | None) -> tuple[int, ...]:
    if member is None:
        return ()
    return member.spec.declared_versions if isinstance(member, InferenceModel) else (member.spec.version,)
