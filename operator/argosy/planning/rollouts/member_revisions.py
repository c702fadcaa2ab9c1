"""The revisions of a member that a round knows. A model and an ensemble supply the same facts in different ways."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from argosy.api import InferenceModel, Member
from argosy.planning.history import latest_of
from argosy.planning.pinned import PinnedEnsemble
from argosy.planning.rollouts.memory import RolloutMemory, SpecsByRevision
from argosy.planning.rollouts.revision import revision_of, with_declared
from argosy.rollout.state import Revision, RolloutState


@dataclass(frozen=True, slots=True)
class MemberRevisions:
    """The revisions of a member: of a model by its specs, of an ensemble with the versions of its steps.

    `resource`: as it is declared; `declared`: the revision of that. `specs`: by the name of the revision, the declared
    one's last. `serving`: what serves before there is a state. `records`: the declared specs that later rounds may
    need, by the name under which they are recorded, the latest last; `recorded_names`: that name by the
    revision's, where it is another one. `uniform`: it is the same on all servers, as ensembles and what they run are.
    """

    resource: Member
    declared: Revision
    specs: SpecsByRevision
    records: SpecsByRevision
    serving: Revision | None = None
    recorded_names: Mapping[str, str] = field(default_factory=dict)
    uniform: bool = False

    def spec(self, revision: Revision | None) -> Member:
        """Return the spec of a revision with the declared fields that are no part of it; the declared one without a
        revision, or where its spec is lost.
        """
        declared = self.specs[self.declared.name]
        spec = self.specs.get(revision.name) if revision is not None else None
        return with_declared(spec, declared) if spec is not None else declared

    def named(self, name: str) -> Revision | None:
        """Return the revision of this name; None if its spec is not known."""
        spec = self.specs.get(name)
        if spec is None:
            return None
        pins = spec.pins if isinstance(spec, PinnedEnsemble) else {}
        return Revision(name, spec.spec.default_version, tuple(sorted(pins.items())))

    def restored(self, state: RolloutState | None) -> RolloutState | None:
        """Return the state, without a stable revision if its spec is lost: nothing can be gone back to then."""
        if state is None or state.stable is None or state.stable.name in self.specs:
            return state
        return state.without_stable()

    def recorded(self, revisions: Iterable[Revision | None]) -> frozenset[str]:
        """Return the names under which these revisions are recorded."""
        names = (revision.name for revision in revisions if revision is not None)
        return frozenset(self.recorded_names.get(name, name) for name in names)

    def retained(self, in_use: frozenset[str], good: frozenset[str] = frozenset()) -> dict[str, Member]:
        """Return the records to retain: those in use, the latest, and as many before it as the resource declares, the
        `good` ones first.
        """
        latest, *former = reversed(list(self.records))
        former = latest_of(former, self.resource.spec.revision_history_limit, good - in_use)
        return {name: spec for name, spec in self.records.items() if name in {*in_use, latest, *former}}


def model_revisions(model: InferenceModel, before: RolloutMemory, is_step: bool) -> MemberRevisions:
    """Return the revisions of a model. `is_step`: ensembles run it."""
    declared = revision_of(model)
    specs = {name: spec for name, spec in before.revisions.items() if name != declared.name} | {declared.name: model}
    serving = before.last if before.state is None else None
    return MemberRevisions(model, declared, specs, specs, serving, uniform=is_step)
