"""One round of the rollouts of a fleet: each member's machine advances, and stable specs replace declared ones."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TypeGuard

from argosy.api import Ensemble, InferenceModel, Resource, ServingPool
from argosy.api.model.rollout.rollout import Strategy
from argosy.api.servingpool import RuntimeName
from argosy.api.values.identity import PoolKey
from argosy.planning.pinned import PinnedEnsemble
from argosy.planning.rollouts.ensembles import DeclaredEnsemble, EnsembleFacts, StepVersions
from argosy.planning.rollouts.facts import Files, LoadedRevisions
from argosy.planning.rollouts.member import MemberRollout, is_staged
from argosy.planning.rollouts.requests import RolloutRequests
from argosy.planning.rollouts.revision import Member, revision_of, with_declared
from argosy.planning.rollouts.strategy import DECLARED_RECREATE, ChosenStrategy
from argosy.planning.validation.accept import Accepted, Check, defer
from argosy.rollout.machine import advance
from argosy.rollout.state import FailureFact, Phase, Revision, RolloutInputs, RolloutState
from argosy.rollout.verdict import Verdict

_NO_MEMORY, _INVALID = "NoMemory", "InvalidSpec"
_REPORTED_AGAIN = timedelta(seconds=30)
"""After this long a reported failure is the candidate's own."""
SpecsByRevision = Mapping[str, Member]
"""Specs of a member's revisions, by their names."""


@dataclass(frozen=True, slots=True)
class RolloutMemory:
    """What is known of a member's rollout before a round: its `state`, the specs of its `revisions`, and the `weights`
    that servers were last sent, by version. `last`: the revision that was acted upon before there was a rollout.
    `former_failures`: messages of failures of other files with the candidate's version, which it did not cause.
    """

    state: RolloutState | None = None
    revisions: SpecsByRevision = field(default_factory=dict)
    weights: Mapping[int, int] = field(default_factory=dict)
    last: Revision | None = None
    chosen: ChosenStrategy | None = None
    former_failures: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Evidenced:
    """What the analysis of a member's present step says: its verdict, and the requests that the candidate answered.

    `traffic`: the candidate's share of the requests without a version; None if none was measured.
    """

    verdict: Verdict | None = None
    requests: int = 0
    traffic: float | None = None


@dataclass(frozen=True, slots=True)
class Rollouts:
    """The rollouts of a round, by identity. `revisions`: the specs that later rounds may need, by the revision's
    name.
    """

    members: Mapping[str, MemberRollout] = field(default_factory=dict)
    revisions: Mapping[str, SpecsByRevision] = field(default_factory=dict)

    @property
    def memory(self) -> dict[str, RolloutMemory]:
        """What the next round is to know."""
        return {
            name: RolloutMemory(
                member.state,
                self.revisions.get(name, {}),
                member.action.weights,
                chosen=member.chosen,
                former_failures=member.former_failures,
            )
            for name, member in self.members.items()
        }

    def with_strategies(self, chosen: Mapping[str, ChosenStrategy]) -> "Rollouts":
        """Return the rollouts with the strategies that were `chosen` now, by identity; the others have none."""
        members = {name: replace(member, chosen=chosen.get(name)) for name, member in self.members.items()}
        return replace(self, members=members)

    def declared(self, resources: Iterable[Resource]) -> Iterator[Resource]:
        """Yield what is acted upon as it was declared: a candidate's spec in place of the stable one."""
        for resource in resources:
            member = self.members.get(resource.identity)
            yield member.declared if member is not None else resource

    @property
    def specs(self) -> Iterator[Member]:
        """The specs that servers may have loaded: of stable revisions and of candidates."""
        for member in self.members.values():
            yield member.stable
            if member.candidate is not None:
                yield member.candidate

    @property
    def wake(self) -> datetime | None:
        """When one of them is to be advanced though nothing changes."""
        wakes = (member.action.wake for member in self.members.values())
        return min((wake for wake in wakes if wake is not None), default=None)

    def acted_upon(self, accepted: Accepted, last: Mapping[str, Resource], check: Check) -> Accepted:
        """Return what is accepted, with the stable spec of each member whose candidate is not promoted, and with the
        revision of each ensemble that has one.
        """
        acted: dict[str, Resource] = {
            name: member.acted_upon
            for name, member in self.members.items()
            if member.acts_on_stable or isinstance(member.stable, PinnedEnsemble)
        }
        return defer(accepted, acted, {**last, **acted}, check) if acted else accepted


def advanced(
    accepted: Accepted,
    before: Mapping[str, RolloutMemory],
    evidence: Mapping[str, Evidenced],
    loaded: Mapping[PoolKey, LoadedRevisions],
    now: datetime,
) -> Rollouts:
    """Return the rollouts of the accepted members after a round. `before` and `evidence` are by identity."""
    servers_of = {
        pool.key: replace(loaded.get(pool.key, LoadedRevisions()), divides=pool.spec.runtime.name is RuntimeName.ARGOSY)
        for pool in accepted.valid
        if isinstance(pool, ServingPool)
    }
    ensembles = (one for one in accepted.valid if isinstance(one, Ensemble))
    run = {f"{ensemble.namespace}/{step.model}" for ensemble in ensembles for step in ensemble.spec.steps}
    members: dict[str, MemberRollout] = {}
    revisions: dict[str, SpecsByRevision] = {}
    for member in accepted.valid:
        if takes_part(member) and isinstance(member, InferenceModel) and member.pool_key in servers_of:
            name = member.identity
            one = _Round(member, before.get(name, RolloutMemory()), servers_of[member.pool_key], member.key in run)
            one.refused = _refused(accepted, name)
            members[name] = one.advanced(evidence.get(name, Evidenced()), now)
            revisions[name] = one.recorded(members[name])
    for pool, servers in servers_of.items():
        if not servers.divides:
            continue  # its ensembles have one configuration for all versions, so that none is loaded next to another
        of_pool = [one for one in accepted.valid if not isinstance(one, ServingPool) and one.pool_key == pool]
        steps = StepVersions.of(of_pool, members)
        for ensemble in steps.ensembles():
            name = ensemble.identity
            unit = _EnsembleRound.of(ensemble, steps, before.get(name, RolloutMemory()), servers)
            if unit is not None:
                unit.refused = _refused(accepted, name)
                members[name] = unit.advanced(evidence.get(name, Evidenced()), now)
                revisions[name] = unit.recorded(members[name])
                steps.decided(members[name])
    return Rollouts(members, revisions)


def takes_part(member: Resource) -> TypeGuard[Member]:
    """Return whether it may have a rollout: a model by itself, of which a new version is proven, or any ensemble, since
    others that run it may prove its revisions.
    """
    if type(member) is InferenceModel:
        return is_staged(member.spec.rollout)
    return type(member) is Ensemble


def _refused(accepted: Accepted, name: str) -> FailureFact | None:
    """Return why the newest spec of a member is not acted upon, which leaves open what is to be released."""
    if name not in accepted.still:
        return None
    problem = next((problem for problem in accepted.problems if problem.resource == name), None)
    what = f": {problem.path} {problem.message}" if problem is not None else ""
    return FailureFact(
        _INVALID, f"the spec that is declared now is not accepted{what}; correct it, or declare the former one again"
    )


def _restored_state(state: RolloutState | None, specs: SpecsByRevision) -> RolloutState | None:
    """Return the state; without a stable revision where its spec is lost, since nothing can be gone back to then."""
    if state is None or state.stable is None or state.stable.name in specs:
        return state
    return state.without_stable()


class _Round:
    """One member's round. `refused`: why the spec that is declared now is not acted upon, so that nothing goes on."""

    _is_step = False
    refused: FailureFact | None = None

    def __init__(self, member: Member, before: RolloutMemory, loaded: LoadedRevisions, is_step: bool) -> None:
        self._is_step = is_step
        self._member, self._before, self._loaded = member, before, loaded
        self._resource, self._declared = member, revision_of(member)
        self._specs: dict[str, Member] = dict(before.revisions)
        self._serving = before.last if before.state is None else None
        self._specs.pop(self._declared.name, None)
        self._specs[self._declared.name] = member  # the latest is the last
        state = before.state
        self._state = _restored_state(state, self._specs)

    def advanced(self, evidenced: Evidenced, now: datetime) -> MemberRollout:
        """Ask the machine, and return the member's rollout."""
        state, action = advance(self._state, self._member.spec.rollout, self._inputs(evidenced, now))
        stable, candidate = self._spec(state.stable), self._candidate(state)
        undivided = self._loaded.undivided(self._member.name, action.weights)
        # until the next choice that of before counts, for the same candidate alone
        chosen = self._chosen if state.candidate == self._tried else None
        return MemberRollout(
            self._resource,
            stable,
            candidate,
            state,
            action,
            self._names(),
            undivided,
            evidenced.traffic,
            chosen,
            self._former_failures(state, now),
            self._is_step,
        )

    def _divides_replicas(self) -> bool:
        """Return whether replicas divide requests; what ensembles run is the same on all servers."""
        chosen = self._chosen
        return chosen is not None and not self._is_step and chosen.divides_replicas(self._member.spec.fewest_replicas)

    def _former_failures(self, state: RolloutState, now: datetime) -> frozenset[str]:
        """Return the failures that servers still report of other files with the candidate's version.

        They count as its own once they have been reported for longer than a server takes to begin to load it.
        """
        candidate, before = state.candidate, self._state.candidate if self._state is not None else None
        if candidate is None or now - state.since > _REPORTED_AGAIN:
            return frozenset()
        reported = self._loaded.failed(self._member.name, candidate.version)
        return reported if candidate != before else reported & self._before.former_failures

    @property
    def _tried(self) -> Revision:
        """The revision that is proven, or would be."""
        state = self._state
        return (state.candidate if state is not None else None) or self._declared

    @property
    def _chosen(self) -> ChosenStrategy | None:
        """The strategy that was chosen for that revision; what is declared to recreate never loads both."""
        before, state = self._before.chosen, self._state
        if before is not None and state is not None and state.candidate == self._tried:
            return before
        settings = self._member.spec.rollout
        if settings is not None and settings.strategy is Strategy.RECREATE:
            return DECLARED_RECREATE
        return None

    def recorded(self, rollout: MemberRollout) -> dict[str, Member]:
        """Return the specs that later rounds may need: those in use, and the latest."""
        latest = set(list(self._specs)[-1 - self._member.spec.revision_history_limit :])
        return {name: spec for name, spec in self._specs.items() if name in rollout.in_use | latest}

    def _names(self) -> dict[str, str]:
        return {}

    def _revisions(self) -> list[Revision]:
        return [Revision(name, spec.spec.default_version) for name, spec in self._specs.items()]

    def _spec(self, revision: Revision | None) -> Member:
        """Return the spec of a revision with the declared fields that are no part of it."""
        spec = self._specs.get(revision.name) if revision is not None else None
        return with_declared(spec, self._member) if spec is not None else self._member

    def _candidate(self, state: RolloutState) -> Member | None:
        return self._spec(state.candidate) if state.candidate is not None else None

    def _inputs(self, evidenced: Evidenced, now: datetime) -> RolloutInputs:
        state, member, requests = self._state, self._member, RolloutRequests.of(self._member)
        candidate, chosen = self._tried, self._chosen
        stable = state.stable if state is not None else self._serving
        files, former = _files(self._specs.get(candidate.name)), self._before.former_failures
        facts = self._loaded.candidate(member.name, candidate.version, files, former)
        some = self._divides_replicas() and (state is None or state.phase is not Phase.PROMOTING)
        return RolloutInputs(
            declared=self._declared,
            now=now,
            candidate_ready=facts.ready_on_some if some else facts.ready,
            candidate_loaded=facts.loaded,
            stable_ready=stable is None or self._loaded.is_ready(member.name, stable.version),
            candidate_failed=facts.failure,
            unrelated=self.refused or facts.unrelated or _obstacle(chosen),
            verdict=evidenced.verdict,
            requests=evidenced.requests,
            together=chosen is None or chosen.loads_both,
            by_replicas=self._divides_replicas(),
            applied=not self._loaded.undivided(member.name, self._before.weights),
            split=self._loaded.divides,
            paused=requests.paused or self.refused is not None,
            promote=requests.promote,
            retry=requests.retry,
            undo=requests.undo,
            undo_to=requests.undo_to(self._revisions()),
            undo_name=requests.undo_name,
            serving=self._serving,
        )


class _EnsembleRound(_Round):
    """The round of an ensemble whose revisions the operator numbers."""

    _is_step = True

    def __init__(
        self, declared: DeclaredEnsemble, facts: EnsembleFacts, before: RolloutMemory, loaded: LoadedRevisions
    ) -> None:
        self._member, self._before, self._loaded = declared.pinned, before, loaded
        self._resource, self._declared = declared.ensemble, declared.revision
        self._pinned = facts.specs_of(declared)
        self._specs = dict(self._pinned)
        self._serving = facts.served
        latest = revision_of(declared.ensemble).name
        self._former = {name: spec for name, spec in facts.specs.items() if name != latest} | {
            latest: declared.ensemble
        }
        state = before.state
        self._state = _restored_state(state, self._specs)

    @classmethod
    def of(
        cls, ensemble: Ensemble, steps: StepVersions, before: RolloutMemory, loaded: LoadedRevisions
    ) -> "_EnsembleRound | None":
        """Return the round of an ensemble; None where a step has no version."""
        specs = {name: spec for name, spec in before.revisions.items() if isinstance(spec, Ensemble)}
        last = before.last.name if before.last is not None else ""
        facts = EnsembleFacts(before.state, specs, last, loaded.steps(ensemble.name))
        declared = steps.declared(ensemble, facts)
        return cls(declared, facts, before, loaded) if declared is not None else None

    def recorded(self, rollout: MemberRollout) -> dict[str, Member]:
        """Return the declared specs that later rounds may need, by the names of their revisions without steps."""
        latest = set(list(self._former)[-1 - self._resource.spec.revision_history_limit :])
        return {name: spec for name, spec in self._former.items() if name in rollout.in_use | latest}

    def _names(self) -> dict[str, str]:
        return {
            name: base
            for name, spec in self._pinned.items()
            for base, former in self._former.items()
            if {step.model for step in former.spec.steps} == spec.pins.keys()
            and revision_of(former, spec.pins).name == name
        }

    def _revisions(self) -> list[Revision]:
        pinned = ((name, spec.spec.version, spec.pins) for name, spec in self._pinned.items())
        return [Revision(name, version, tuple(sorted(pins.items()))) for name, version, pins in pinned]


def _obstacle(chosen: ChosenStrategy | None) -> FailureFact | None:
    """Return why a candidate that is loaded nowhere waits for memory."""
    return FailureFact(_NO_MEMORY, chosen.message) if chosen is not None and chosen.strategy is None else None


def _files(spec: Member | None) -> Files | None:
    """Return the files of a spec's newest version; None for an ensemble, and for an engine."""
    if not isinstance(spec, InferenceModel) or spec.spec.engine is not None:
        return None
    declared = spec.spec.declared[spec.spec.default_version]
    return declared.storage_uri, declared.digest or ""
