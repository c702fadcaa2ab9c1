"""One member's round: what is known of it is put to the machine of rollouts."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from argosy.api import InferenceModel
from argosy.api.model.rollout.rollout import Strategy
from argosy.planning.rollouts.facts import CandidateFacts, Files, LoadedRevisions
from argosy.planning.rollouts.member import MemberRollout
from argosy.planning.rollouts.member_revisions import MemberRevisions
from argosy.planning.rollouts.memory import CandidateEvidence, RolloutMemory
from argosy.planning.rollouts.requests import RolloutRequests, command_argument
from argosy.planning.rollouts.strategy import DECLARED_RECREATE, ChosenStrategy
from argosy.rollout.machine import advance
from argosy.rollout.state import FailureFact, Phase, Revision, RolloutInputs, RolloutState

_NO_MEMORY = "NoMemory"
_REPORTED_AGAIN = timedelta(seconds=30)
"""After this long a reported failure is that of the files which are to be loaded now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberRound:
    """What a round knows of one member: its revisions, its rollout `before`, what its pool's servers have `loaded`, and
    the evidence of the present step. `refused`: why the spec that is declared now is not acted upon, so that nothing
    goes on.
    """

    revisions: MemberRevisions
    before: RolloutMemory
    loaded: LoadedRevisions
    evidence: CandidateEvidence
    now: datetime
    refused: FailureFact | None = None

    def advanced(self) -> MemberRollout:
        """Ask the machine, and return the member's rollout."""
        revisions = self.revisions
        state, action = advance(self._state, revisions.resource.spec.rollout, self.inputs)
        return MemberRollout(
            revisions=revisions,
            stable=revisions.spec(state.stable),
            candidate=revisions.spec(state.candidate) if state.candidate is not None else None,
            state=state,
            action=action,
            undivided=self.loaded.undivided(revisions.resource.name, action.weights),
            traffic=self.evidence.traffic,
            # until the next choice that of before counts, for the same candidate alone
            chosen=self._chosen if state.candidate == self._tried else None,
            former_failures=self._former_failures(state),
        )

    @property
    def inputs(self) -> RolloutInputs:
        """What the machine decides by."""
        name, state, chosen = self.revisions.resource.name, self._state, self._chosen
        stable = state.stable if state is not None else self.revisions.serving
        facts, requests = self._candidate_facts(), RolloutRequests.of(self.revisions.resource)
        some = self._divides_replicas and (state is None or state.phase is not Phase.PROMOTING)
        return RolloutInputs(
            declared=self.revisions.declared,
            now=self.now,
            resource=command_argument(self.revisions.resource),
            candidate_ready=facts.ready_on_some if some else facts.ready,
            candidate_loaded=facts.loaded,
            stable_ready=stable is None or self.loaded.is_ready(name, stable.version),
            stable_failed=self._stable_failure(stable),
            candidate_failed=facts.failure,
            unrelated=self.refused or facts.unrelated or _obstacle(chosen),
            verdict=self.evidence.verdict,
            requests=self.evidence.requests,
            together=chosen is None or chosen.loads_both,
            by_replicas=self._divides_replicas,
            applied=not self.loaded.undivided(name, self.before.weights),
            split=self.loaded.divides,
            paused=requests.paused or self.refused is not None,
            promote=requests.promote,
            retry=requests.retry,
            undo=requests.undo,
            undo_to=self.revisions.named(requests.undo_name),
            undo_name=requests.undo_name,
            serving=self.revisions.serving,
        )

    @property
    def _state(self) -> RolloutState | None:
        return self.revisions.restored(self.before.state)

    @property
    def _tried(self) -> Revision:
        """The revision that is proven, or would be."""
        state = self._state
        return (state.candidate if state is not None else None) or self.revisions.declared

    @property
    def _chosen(self) -> ChosenStrategy | None:
        """The strategy that was chosen for that revision; what is declared to recreate never loads both."""
        before, state = self.before.chosen, self._state
        if before is not None and state is not None and state.candidate == self._tried:
            return before
        settings = self.revisions.resource.spec.rollout
        if settings is not None and settings.strategy is Strategy.RECREATE:
            return DECLARED_RECREATE
        return None

    @property
    def _divides_replicas(self) -> bool:
        """Whether replicas divide requests; what ensembles run is the same on all servers."""
        chosen, revisions = self._chosen, self.revisions
        return (
            chosen is not None
            and not revisions.uniform
            and chosen.divides_replicas(revisions.resource.spec.fewest_replicas)
        )

    def _stable_failure(self, stable: Revision | None) -> FailureFact | None:
        """Return why no server can load the stable revision; None while one has it, or has not tried.

        Of a candidate with its version number servers may report the failure for a while.
        """
        state = self._state
        if stable is None or state is None:
            return None
        replaced = state.candidate is not None and state.candidate.version == stable.version
        if replaced and self.now - state.since <= _REPORTED_AGAIN:
            return None
        return self.loaded.failure(self.revisions.resource.name, stable.version)

    def _candidate_facts(self) -> CandidateFacts:
        tried, former = self._tried, self.before.former_failures
        return self.loaded.candidate(self.revisions.resource.name, tried.version, self._files(tried), former)

    def _files(self, revision: Revision) -> Files | None:
        """Return the files of a revision's newest version; None for an ensemble, for an engine, and without a spec."""
        spec = self.revisions.specs.get(revision.name)
        if not isinstance(spec, InferenceModel) or spec.spec.engine is not None:
            return None
        declared = spec.spec.declared[spec.spec.default_version]
        return declared.storage_uri, declared.digest or ""

    def _former_failures(self, state: RolloutState) -> frozenset[str]:
        """Return the failures that servers still report of other files with the candidate's version.

        They count as its own once they have been reported for longer than a server takes to begin to load it.
        """
        candidate, before = state.candidate, self._state.candidate if self._state is not None else None
        if candidate is None or self.now - state.since > _REPORTED_AGAIN:
            return frozenset()
        reported = self.loaded.failed(self.revisions.resource.name, candidate.version)
        return reported if candidate != before else reported & self.before.former_failures


def _obstacle(chosen: ChosenStrategy | None) -> FailureFact | None:
    """Return why a candidate that is loaded nowhere waits for memory."""
    return FailureFact(_NO_MEMORY, chosen.message) if chosen is not None and chosen.strategy is None else None
