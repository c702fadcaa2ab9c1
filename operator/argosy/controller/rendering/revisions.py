"""The histories of a pool and its members: which ControllerRevisions are written, and which are retained. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from weakref import ReferenceType, ref

from argosy.api import Resource
from argosy.api.values.identity import Identity
from argosy.controller.resources.store import Declared
from argosy.planning.history import Revision, revised
from argosy.reconcile import Outcome
from argosy.render.workloads import REVISION, KubernetesObject, controller_revision, controller_revision_name

Histories = Mapping[str, Sequence[Revision]]
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


@dataclass(frozen=True, slots=True)
class Revisions:
    """ControllerRevisions to write, and the identities of those to retain; the pool's others are deleted."""

    written: tuple[KubernetesObject, ...]
    retained: frozenset[Identity]


def revisions(declared: Declared, outcome: Outcome, histories: Histories, names: RevisionNames) -> Revisions:
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
            history = revised(existing, names.of(current), current.spec.revision_history_limit)
            stay -= history.outdated
            if history.current not in existing:
                stay.discard(history.current.name)
                written.append(controller_revision(declared.pool, current, history.current))
        retained |= {Identity.of(REVISION, resource.namespace, name) for name in stay}
    return Revisions(tuple(written), frozenset(retained))
