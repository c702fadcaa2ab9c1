"""A resource's history, as ControllerRevisions that it owns: each spec that was acted upon.

The newest is the last valid spec: any process of the operator goes on from it where a newer spec is wrong.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from argosy.api.documents import KINDS, Resource
from argosy.api.servingpool import ServingPool
from argosy.api.values.meta import API_VERSION
from argosy.planning.history import ControllerRevision
from argosy.render.names import revision_name
from argosy.render.workloads.metadata import owned, revision_labels

REVISION = "ControllerRevision"
"""The kind."""
ROLLOUT_REVISION = "argosy.dev/rollout-revision"
OUTCOME = "argosy.dev/rollout-outcome"
MESSAGE = "argosy.dev/rollout-message"
REVISION_NOTES = (ROLLOUT_REVISION, OUTCOME, MESSAGE)
"""The annotations that say which revision a spec was in a rollout, and what came of it."""
_SPEC = "spec"
_SCALED = ("replicas", "revisionHistoryLimit")
"""Fields that are not recorded: scaling a resource makes no new revision."""


def controller_revision_name(resource: Resource) -> str:
    """Return the name of a spec's ControllerRevision: equal specs of one resource, by its uid, have one name."""
    text = json.dumps([resource.metadata.uid, recorded_spec(resource)], sort_keys=True, separators=(",", ":"))
    return revision_name(resource.name, hashlib.sha256(text.encode()).hexdigest())


def controller_revision(pool: ServingPool, resource: Resource, revision: ControllerRevision) -> dict[str, Any]:
    """Return the ControllerRevision that holds the spec; of all its content only `revision` may change later."""
    labels = revision_labels(pool, resource)
    head = owned("apps/v1", REVISION, revision.name, resource, labels, dict(revision.notes))
    return {**head, "data": {_SPEC: recorded_spec(resource)}, "revision": revision.number}


class LatestRevisions:
    """The spec in the newest revision of each resource, from revisions that come page by page."""

    def __init__(self) -> None:
        self._latest: dict[str, tuple[int, dict[str, Any]]] = {}
        self._of_rollouts: dict[str, list[RecordedRevision]] = {}

    def add(self, revisions: Iterable[Mapping[str, Any]]) -> None:
        """Add some of the revisions. What is not ours is skipped: people can create any object."""
        for revision in revisions:
            body, number = _body(revision), int(revision.get("revision", 0))
            if body is not None:
                uid = body["metadata"]["uid"]
                if uid not in self._latest or self._latest[uid][0] < number:
                    self._latest[uid] = number, body
                name = revision["metadata"].get("annotations", {}).get(ROLLOUT_REVISION)
                if name:
                    self._of_rollouts.setdefault(uid, []).append(RecordedRevision(name, number, body))

    def bodies(self) -> list[dict[str, Any]]:
        """Return the newest revision of each resource as a body without status."""
        return [body for _, body in self._latest.values()]

    def of_rollouts(self) -> dict[str, list["RecordedRevision"]]:
        """Return the revisions that took part in rollouts, by their resource's uid, the newest last."""
        return {uid: sorted(revisions, key=lambda one: one.number) for uid, revisions in self._of_rollouts.items()}


@dataclass(frozen=True, slots=True)
class RecordedRevision:
    """A revision of a rollout, by its name there, with the resource's body without status."""

    name: str
    number: int
    body: Mapping[str, Any]


def _body(revision: Mapping[str, Any]) -> dict[str, Any] | None:
    metadata, data = revision["metadata"], revision.get("data")
    owners = [owner for owner in metadata.get("ownerReferences", ()) if owner.get("controller")]
    if not owners or owners[0]["kind"] not in KINDS or not isinstance(data, Mapping) or _SPEC not in data:
        return None
    owner = owners[0]
    return {
        "apiVersion": API_VERSION,
        "kind": owner["kind"],
        "metadata": {"name": owner["name"], "namespace": metadata["namespace"], "uid": owner["uid"]},
        "spec": data[_SPEC],
    }


def recorded_spec(resource: Resource) -> dict[str, Any]:
    """Return the recorded part of a spec, which is the same for equal specs: as declared, without defaults."""
    written: dict[str, Any] = resource.spec.model_dump(mode="json", by_alias=True, exclude_unset=True)
    return {field: value for field, value in written.items() if field not in _SCALED}
