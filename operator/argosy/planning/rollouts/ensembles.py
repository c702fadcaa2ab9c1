"""The revisions of ensembles in a round: the versions that their steps have now, and the numbers of their revisions.

A step's own rollout is not applied to what an ensemble runs. An ensemble with a rollout proves a step's new version by
itself, as soon as it is declared, and by the requests that the ensemble gets; one that its own rollout took back is
proposed to no ensemble. An ensemble without any rollout runs the versions that were promoted.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from argosy.api import Ensemble, InferenceModel, Resource
from argosy.planning.pinned import PinnedEnsemble, numbered_ensembles, pins_of_steps, revision_number
from argosy.planning.rollouts.facts import LoadedRevisions
from argosy.planning.rollouts.member import MemberRollout, is_staged
from argosy.planning.rollouts.member_revisions import MemberRevisions
from argosy.planning.rollouts.memory import RolloutMemory
from argosy.planning.rollouts.revision import revision_of
from argosy.rollout.state import PROVING, Revision, RolloutState


@dataclass(frozen=True, slots=True)
class DeclaredEnsemble:
    """An ensemble of a pool as it is declared now, and its `revision`, with the versions of its steps."""

    ensemble: Ensemble
    revision: Revision

    @property
    def pinned(self) -> PinnedEnsemble:
        """Its spec, with the number of its revision and the versions of its steps."""
        return PinnedEnsemble.of(self.ensemble, self.revision.version, dict(self.revision.steps))


@dataclass(frozen=True, slots=True)
class EnsembleFacts:
    """What is known of an ensemble before a round.

    `state`: of its rollout. `specs`: declared specs that it had, by the name of their revision without steps; `last`:
    the name of the one that was acted upon before there was a state. `loaded`: the versions on servers, each with the
    versions of its steps.
    """

    state: RolloutState | None = None
    specs: Mapping[str, Ensemble] = field(default_factory=dict)
    last: str = ""
    loaded: Mapping[int, Mapping[str, int]] = field(default_factory=dict)

    @property
    def served(self) -> Revision | None:
        """The revision that serves before there is a state: the last spec with the steps that servers have loaded."""
        spec = self.specs.get(self.last) if self.state is None else None
        pins = self.loaded.get(spec.spec.version, {}) if spec is not None else {}
        if spec is None or pins.keys() != _models(spec):
            return None
        return Revision(revision_of(spec, pins).name, spec.spec.version, tuple(sorted(pins.items())))

    @property
    def revisions(self) -> tuple[Revision, ...]:
        """Every revision that has a number."""
        state, served = self.state, self.served
        if state is None:
            return (served,) if served is not None else ()
        named = (one for one in (state.stable, state.candidate, state.former) if one is not None)
        failed, ended = (one.revision for one in state.failed), (one.revision for one in state.history)
        return (*named, *failed, *ended)

    def specs_of(self, declared: DeclaredEnsemble) -> dict[str, PinnedEnsemble]:
        """Return the spec of each known revision, by its name, the declared one last."""
        raw = [*self.specs.values(), declared.ensemble]
        specs: dict[str, PinnedEnsemble] = {}
        for revision in self.revisions:
            pins = dict(revision.steps)
            like = (spec for spec in raw if pins.keys() == _models(spec))
            spec = next((spec for spec in like if revision_of(spec, pins).name == revision.name), None)
            if spec is not None:
                specs[revision.name] = PinnedEnsemble.of(spec, revision.version, pins)
        specs.pop(declared.revision.name, None)
        return {**specs, declared.revision.name: declared.pinned}


@dataclass(slots=True)
class StepVersions:
    """The version of each member of a pool that its ensembles run next, by name. Ensembles whose revisions the operator
    numbers are decided one after another, inner ones first.
    """

    _numbered: tuple[str, ...]
    _ensembles: Mapping[str, Ensemble]
    _versions: dict[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, members: Iterable[Resource], rollouts: Mapping[str, MemberRollout]) -> "StepVersions":
        """Return the versions of one pool's models and variants. `rollouts` are those of models, by identity."""
        every = [one for one in members if isinstance(one, InferenceModel | Ensemble)]
        ensembles = {one.name: one for one in every if type(one) is Ensemble}
        released = [name for name, one in ensembles.items() if is_staged(one.spec.rollout)]
        numbered = numbered_ensembles(ensembles, released)
        others = [one for one in every if one.name not in numbered]
        return cls(numbered, ensembles, {one.name: _proposed(one, rollouts.get(one.identity)) for one in others})

    def ensembles(self) -> Iterator[Ensemble]:
        """Yield the ensembles whose revisions the operator numbers, inner ones first."""
        return (self._ensembles[name] for name in self._numbered)

    def declared(self, ensemble: Ensemble, facts: EnsembleFacts) -> DeclaredEnsemble | None:
        """Return the declared revision of an ensemble; None where a step has no version."""
        pins = pins_of_steps(ensemble, self._versions, self._numbered)
        if pins is None:
            return None
        name = revision_of(ensemble, pins).name
        numbers = {revision.name: revision.version for revision in facts.revisions}
        version = revision_number(name, ensemble.spec.version, numbers, facts.loaded)
        return DeclaredEnsemble(ensemble, Revision(name, version, tuple(sorted(pins.items()))))

    def decided(self, rollout: MemberRollout) -> None:
        """Record what came of an ensemble's round: the version that outer ones run next."""
        self._versions[rollout.declared.name] = _proposed(rollout.stable, rollout)


def ensemble_revisions(
    ensemble: Ensemble, steps: StepVersions, before: RolloutMemory, loaded: LoadedRevisions
) -> MemberRevisions | None:
    """Return the revisions of an ensemble that the operator numbers; None where a step has no version. Its specs are
    recorded as they were declared, by the name of their revision without steps.
    """
    recorded = {name: spec for name, spec in before.revisions.items() if isinstance(spec, Ensemble)}
    last = before.last.name if before.last is not None else ""
    facts = EnsembleFacts(before.state, recorded, last, loaded.steps(ensemble.name))
    declared = steps.declared(ensemble, facts)
    if declared is None:
        return None
    latest, specs = revision_of(ensemble).name, facts.specs_of(declared)
    records = {name: spec for name, spec in recorded.items() if name != latest} | {latest: ensemble}
    names = _recorded_names(specs, records)
    return MemberRevisions(ensemble, declared.revision, specs, records, facts.served, names, uniform=True)


def _recorded_names(specs: Mapping[str, PinnedEnsemble], records: Mapping[str, Ensemble]) -> dict[str, str]:
    """Return the name under which each revision's declared spec is recorded."""
    return {
        name: recorded
        for name, spec in specs.items()
        for recorded, declared in records.items()
        if _models(declared) == spec.pins.keys() and revision_of(declared, spec.pins).name == name
    }


def _proposed(member: InferenceModel | Ensemble, rollout: MemberRollout | None) -> int:
    """Return the version of a member that ensembles run next: the one that is proven, or else the stable one."""
    state = rollout.state if rollout is not None else None
    if state is None:
        return member.spec.default_version
    if state.candidate is not None and state.phase in PROVING:
        return state.candidate.version
    return state.stable.version if state.stable is not None else member.spec.default_version


def _models(ensemble: Ensemble) -> set[str]:
    return {step.model for step in ensemble.spec.steps}
