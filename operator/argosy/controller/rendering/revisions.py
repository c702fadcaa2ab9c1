"""The histories of a pool and its members: which ControllerRevisions are written, and which are retained. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from weakref import ReferenceType, ref

from argosy.api import Resource
from argosy.api.values.identity import Identity
from argosy.controller.resources.store import Declared
from argosy.planning.history import ControllerRevision, revised
from argosy.planning.rollouts.member import MemberRollout
from argosy.planning.rollouts.rounds.rollouts import Rollouts
from argosy.reconcile import RoundOutcome
from argosy.render.workloads import (
    MESSAGE,
    OUTCOME,
    REVISION,
    ROLLOUT_REVISION,
    KubernetesObject,
    controller_revision,
    controller_revision_name,
)
from argosy.rollout.records import last_word
from argosy.rollout.state import Ending

Histories = Mapping[str, Sequence[ControllerRevision]]
"""The revisions in the cluster, by their resource's uid."""


@dataclass(slots=True)
class RevisionNames:
    """The names of revisions, computed from their content once in the lifetime of a spec."""

    _names: dict[str, tuple[ReferenceType[object], str]] = field(default_factory=dict)

    def of(self, revision: Resource) -> str:
        """Return the name of a revision."""
        uid = revision.metadata.uid
        spec, name = self._names.get(uid, (None, ""))
        if spec is None or spec() is not revision.spec:
            name = controller_revision_name(revision)
            self._names[uid] = ref(revision.spec, partial(self._forget, uid)), name
        return name

    def _forget(self, uid: str, spec: ReferenceType[object]) -> None:
        named = self._names.get(uid)
        if named is not None and named[0] is spec:
            del self._names[uid]

    def __len__(self) -> int:
        """Return the number of cached names."""
        return len(self._names)


Notes = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class RolloutRevisions:
    """The ControllerRevisions of a resource's rollout: `in_use` are those that it has or tries, `good` those that were
    promoted. By name: the `specs` of its revisions, and the `notes` on each.
    """

    in_use: frozenset[str] = frozenset()
    good: frozenset[str] = frozenset()
    specs: Mapping[str, Resource] = field(default_factory=dict)
    notes: Mapping[str, Notes] = field(default_factory=dict)

    @classmethod
    def of(cls, identity: str, rollouts: Rollouts) -> "RolloutRevisions":
        """Return those of one resource; none without a rollout."""
        member = rollouts.members.get(identity)
        if member is None:
            return cls()
        specs = member.records
        names = {name: controller_revision_name(spec) for name, spec in specs.items()}
        return cls(
            frozenset(names[name] for name in member.in_use if name in names),
            frozenset(names[name] for name in member.good if name in names),
            {names[name]: spec for name, spec in specs.items()},
            {names[name]: _notes(name, member) for name in specs},
        )

    def noted(self, revision: ControllerRevision, existing: Sequence[ControllerRevision]) -> ControllerRevision:
        """Return the revision with its notes. What came of it stays once the status no longer has a record of it."""
        notes = self.notes.get(revision.name, ())
        former = next((dict(one.notes) for one in existing if one.name == revision.name), {})
        return replace(revision, notes=tuple({**former, **dict(notes)}.items()) if notes else ())

    def changed(
        self, existing: Sequence[ControllerRevision], latest: str
    ) -> Iterator[tuple[ControllerRevision, Resource]]:
        """Yield the existing revisions but the `latest` one whose notes are others by now, with their specs."""
        for revision in existing:
            if revision.name in self.specs and revision.name != latest:
                yield self.noted(revision, existing), self.specs[revision.name]


def _notes(name: str, member: MemberRollout) -> Notes:
    """Return the annotations of a recorded revision: its name, and what came of it last, of an ensemble with any
    versions of its steps.
    """
    state, recorded = member.state, member.revisions.recorded
    names = frozenset(one.revision.name for one in state.history if name in recorded([one.revision]))
    record = last_word(state.history, names)
    if record is None:
        return ((ROLLOUT_REVISION, name),)
    return ((ROLLOUT_REVISION, name), (OUTCOME, record.outcome), (MESSAGE, record.message))


@dataclass(frozen=True, slots=True)
class Revisions:
    """ControllerRevisions to write, and the identities of those to retain; the pool's others are deleted."""

    written: tuple[KubernetesObject, ...]
    retained: frozenset[Identity]


def revisions(declared: Declared, outcome: RoundOutcome, histories: Histories, names: RevisionNames) -> Revisions:
    """Return the revisions of accepted specs to write, and those to retain.

    Where the newest spec of a resource is invalid, or it refers to another pool, its history is retained.
    """
    wrong = {problem.resource for problem in outcome.problems}
    written: list[KubernetesObject] = []
    retained: set[Identity] = set()
    for resource in (*declared.every, *declared.of_other_pools):
        existing = histories.get(resource.metadata.uid, ())
        stay = {revision.name for revision in existing}
        current = outcome.valid.get(resource.identity)
        if current is not None and resource.identity not in wrong and declared.pool is not None:
            rollout = RolloutRevisions.of(resource.identity, outcome.rollouts)
            noted = {one.name for one in existing if dict(one.notes).get(OUTCOME) == Ending.PROMOTED}
            limit, good = current.spec.revision_history_limit, rollout.good | noted
            history = revised(existing, names.of(current), limit, rollout.in_use, good)
            stay -= history.outdated
            latest = rollout.noted(history.current, existing)
            for revision, spec in ((latest, current), *rollout.changed(existing, latest.name)):
                if revision not in existing:
                    stay.discard(revision.name)
                    written.append(controller_revision(declared.pool, spec, revision))
        retained |= {Identity.of(REVISION, resource.namespace, name) for name in stay}
    return Revisions(tuple(written), frozenset(retained))
