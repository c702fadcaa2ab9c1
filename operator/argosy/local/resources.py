"""The resources of `argosy up` with their statuses, as the status file has them."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from argosy.api import Member
from argosy.api.conditions import ConditionType
from argosy.api.documents import Resource, parse_body
from argosy.api.status import Status
from argosy.api.values.times import timestamp
from argosy.planning.rollouts.memory import RolloutMemory
from argosy.planning.rollouts.rounds.rollouts import Rollouts


def documents(resources: Iterable[Resource], statuses: Mapping[str, Status]) -> list[dict[str, Any]]:
    """Return every resource with its status, as the API server would return it."""
    bodies = []
    for resource in resources:
        with_status = resource.model_copy(update={"status": statuses.get(resource.identity)})
        document = with_status.model_dump(mode="json", by_alias=True, exclude_none=True)
        document["metadata"] = {field: value for field, value in document["metadata"].items() if value}
        bodies.append(document)
    return bodies


def stamped(resources: Iterable[Resource], before: Iterable[Resource], now: datetime) -> tuple[Resource, ...]:
    """Return the resources with the metadata that an API server sets: creation time, and generation."""
    previous = {resource.identity: resource for resource in before}
    return tuple(_stamped(resource, previous.get(resource.identity), now) for resource in resources)


def _stamped(resource: Resource, before: Resource | None, now: datetime) -> Resource:
    created, generation = timestamp(now), 1
    if before is not None:
        created = before.metadata.creation_timestamp or created
        generation = before.metadata.generation + (resource.spec != before.spec)
    update = {"creation_timestamp": created, "generation": generation}
    return resource.model_copy(update={"metadata": resource.metadata.model_copy(update=update)})


def restored(status: Mapping[str, Any] | None) -> tuple[Resource, ...]:
    """Return the resources of a status file with their statuses. Bodies that this release cannot read are skipped."""
    bodies = (status or {}).get("resources", ())
    return tuple(resource for body in bodies if (resource := parse_body(body)[0]) is not None)


def revision_documents(rollouts: Rollouts) -> list[dict[str, Any]]:
    """Return the specs of the revisions that rollouts may go back to, each with the name of its revision."""
    return [
        {"revision": name, "resource": _body(spec)}
        for member in rollouts.members.values()
        for name, spec in member.records.items()
    ]


def _body(resource: Resource) -> dict[str, Any]:
    return resource.model_dump(mode="json", by_alias=True, exclude_none=True, exclude={"status"})


def restored_rollouts(status: Mapping[str, Any] | None) -> dict[str, RolloutMemory]:
    """Return what a status file knows of rollouts, by identity: specs of revisions. States are in the statuses."""
    specs: dict[str, dict[str, Member]] = {}
    for entry in (status or {}).get("revisions", ()):
        resource = parse_body(entry["resource"])[0]
        if isinstance(resource, Member):
            specs.setdefault(resource.identity, {})[str(entry["revision"])] = resource
    return {identity: RolloutMemory(revisions=revisions) for identity, revisions in specs.items()}


def all_ready(resources: Iterable[Resource], statuses: Mapping[str, Status]) -> bool:
    """Return whether every resource is Ready."""
    current = [statuses.get(resource.identity) for resource in resources]
    return all(status is not None and status.ready for status in current)


def any_stalled(statuses: Iterable[Status]) -> bool:
    """Return whether a resource is Stalled: waiting alone will not make it Ready."""
    stalled = (status.condition(ConditionType.STALLED) for status in statuses)
    return any(condition is not None and condition.status == "True" for condition in stalled)
