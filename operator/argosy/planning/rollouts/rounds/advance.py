"""One round of the rollouts of a fleet: models advance first, then the ensembles that run them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from argosy.api import Ensemble, InferenceModel, ServingPool
from argosy.api.servingpool import RuntimeName
from argosy.api.values.identity import PoolKey
from argosy.planning.rollouts.ensembles import StepVersions, ensemble_revisions
from argosy.planning.rollouts.facts import LoadedRevisions
from argosy.planning.rollouts.member import MemberRollout, takes_part
from argosy.planning.rollouts.member_revisions import MemberRevisions, model_revisions
from argosy.planning.rollouts.memory import CandidateEvidence, RolloutMemory
from argosy.planning.rollouts.rounds.member_round import MemberRound
from argosy.planning.rollouts.rounds.rollouts import Rollouts
from argosy.planning.validation.accept import Accepted
from argosy.rollout.state import FailureFact

_INVALID = "InvalidSpec"


def advance_rollouts(
    accepted: Accepted,
    before: Mapping[str, RolloutMemory],
    evidence: Mapping[str, CandidateEvidence],
    loaded: Mapping[PoolKey, LoadedRevisions],
    now: datetime,
) -> Rollouts:
    """Return the rollouts of the accepted members after a round. `before` and `evidence` are by identity."""
    fleet = _FleetRound(accepted, before, evidence, _loaded_by_pool(accepted, loaded), now)
    models = dict(fleet.models())
    ensembles = (one for pool in fleet.loaded for one in fleet.ensembles(pool, models))
    return Rollouts({**models, **dict(ensembles)})


@dataclass(frozen=True, slots=True)
class _FleetRound:
    """What a round knows of all members, by identity. `loaded`: what each valid pool's servers have."""

    accepted: Accepted
    before: Mapping[str, RolloutMemory]
    evidence: Mapping[str, CandidateEvidence]
    loaded: Mapping[PoolKey, LoadedRevisions]
    now: datetime

    def models(self) -> Iterator[tuple[str, MemberRollout]]:
        """Yield the rollout of each model that has one, by identity."""
        valid = self.accepted.valid
        ensembles = [one for one in valid if isinstance(one, Ensemble)]
        steps = {f"{ensemble.namespace}/{step.model}" for ensemble in ensembles for step in ensemble.spec.steps}
        for model in valid:
            if takes_part(model) and isinstance(model, InferenceModel) and model.pool_key in self.loaded:
                revisions = model_revisions(model, self._before(model.identity), model.key in steps)
                yield model.identity, self._advanced(revisions)

    def ensembles(self, pool: PoolKey, models: Mapping[str, MemberRollout]) -> Iterator[tuple[str, MemberRollout]]:
        """Yield the rollout of each of a pool's ensembles whose revisions are numbered, by identity. None on NVIDIA's
        server: its ensembles have one configuration for all versions, so that none is loaded next to another.
        """
        loaded = self.loaded[pool]
        if not loaded.divides:
            return
        of_pool = [one for one in self.accepted.valid if not isinstance(one, ServingPool) and one.pool_key == pool]
        steps = StepVersions.of(of_pool, models)
        for ensemble in steps.ensembles():
            revisions = ensemble_revisions(ensemble, steps, self._before(ensemble.identity), loaded)
            if revisions is not None:
                rollout = self._advanced(revisions)
                steps.decided(rollout)
                yield ensemble.identity, rollout

    def _advanced(self, revisions: MemberRevisions) -> MemberRollout:
        member = revisions.resource
        return MemberRound(
            revisions=revisions,
            before=self._before(member.identity),
            loaded=self.loaded[member.pool_key],
            evidence=self.evidence.get(member.identity, CandidateEvidence()),
            now=self.now,
            refused=self._refused(member.identity),
        ).advanced()

    def _before(self, identity: str) -> RolloutMemory:
        return self.before.get(identity, RolloutMemory())

    def _refused(self, identity: str) -> FailureFact | None:
        """Return why the newest spec of a member is not acted upon, which leaves open what is to be released."""
        if identity not in self.accepted.still:
            return None
        problem = next((problem for problem in self.accepted.problems if problem.resource == identity), None)
        what = f": {problem.path} {problem.message}" if problem is not None else ""
        return FailureFact(
            _INVALID,
            f"the declared spec is not accepted{what}; correct it, or declare the former one again",
        )


def _loaded_by_pool(accepted: Accepted, loaded: Mapping[PoolKey, LoadedRevisions]) -> dict[PoolKey, LoadedRevisions]:
    """Return what the servers of each valid pool have, and whether they can divide requests."""
    return {
        pool.key: replace(loaded.get(pool.key, LoadedRevisions()), divides=pool.spec.runtime.name is RuntimeName.ARGOSY)
        for pool in accepted.valid
        if isinstance(pool, ServingPool)
    }
