"""A resource's history, as ControllerRevisions that it owns: each form of its spec that was acted upon.

The newest is the last valid form: what any process of the operator goes on from where a newer spec is wrong.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

from argosy.api.documents import KINDS, Resource
from argosy.api.servingpool import ServingPool
from argosy.api.values.meta import API_VERSION
from argosy.planning.history import Revision
from argosy.render.names import revision_name
from argosy.render.workloads.metadata import owned, revision_labels

REVISION = "ControllerRevision"
"""The kind."""
_SPEC = "spec"
_BESIDE = ("replicas", "revisionHistoryLimit")
"""Fields that are no part of a form: what scales a resource does not make it another one."""


def form_name(resource: Resource) -> str:
    """Return the name of this form's revision: equal forms of one resource, by its uid, have one, and all others
    another.
    """
    text = json.dumps([resource.metadata.uid, form_of(resource)], sort_keys=True, separators=(",", ":"))
    return revision_name(resource.name, hashlib.sha256(text.encode()).hexdigest())


def controller_revision(pool: ServingPool, resource: Resource, revision: Revision) -> dict[str, Any]:
    """Return the ControllerRevision that holds the spec; of all its content only `revision` may change later."""
    labels = revision_labels(pool, resource)
    head = owned("apps/v1", REVISION, revision.name, resource, labels)
    return {**head, "data": {_SPEC: form_of(resource)}, "revision": revision.number}


class LatestForms:
    """Of each resource the form in its newest revision, out of revisions that come page by page."""

    def __init__(self) -> None:
        self._latest: dict[str, tuple[int, dict[str, Any]]] = {}

    def add(self, revisions: Iterable[Mapping[str, Any]]) -> None:
        """Some of the revisions. What is no form of ours is passed over: people can make anything."""
        for each in revisions:
            body, number = _body(each), int(each.get("revision", 0))
            if body is not None:
                uid = body["metadata"]["uid"]
                if uid not in self._latest or self._latest[uid][0] < number:
                    self._latest[uid] = number, body

    def bodies(self) -> list[dict[str, Any]]:
        """Return each as a body without status."""
        return [body for _, body in self._latest.values()]


def _body(revision: Mapping[str, Any]) -> dict[str, Any] | None:
    metadata, data = revision["metadata"], revision.get("data")
    owners = [each for each in metadata.get("ownerReferences", ()) if each.get("controller")]
    if not owners or owners[0]["kind"] not in KINDS or not isinstance(data, Mapping) or _SPEC not in data:
        return None
    owner = owners[0]
    return {
        "apiVersion": API_VERSION,
        "kind": owner["kind"],
        "metadata": {"name": owner["name"], "namespace": metadata["namespace"], "uid": owner["uid"]},
        "spec": data[_SPEC],
    }


def form_of(resource: Resource) -> dict[str, Any]:
    """Return what makes two specs the same form: the spec as it was declared, without what was left out."""
    written: dict[str, Any] = resource.spec.model_dump(mode="json", by_alias=True, exclude_unset=True)
    return {field: value for field, value in written.items() if field not in _BESIDE}
