"""What `argosy up` knows, as `argosy get` and the view show it."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from argosy.api.conditions import ConditionType
from argosy.api.documents import Resource, parse_body
from argosy.api.servingpool import ServingPool
from argosy.api.status import PlacementStatus, ScalingStatus, Status
from argosy.api.values.times import timestamp

from .view import Row


def documents(resources: Iterable[Resource], statuses: Mapping[str, Status]) -> list[dict[str, Any]]:
    """Return every resource with its status, as Kubernetes would hold it."""
    found = []
    for resource in resources:
        whole = resource.model_copy(update={"status": statuses.get(resource.identity)})
        document = whole.model_dump(mode="json", by_alias=True, exclude_none=True)
        document["metadata"] = {field: value for field, value in document["metadata"].items() if value}
        found.append(document)
    return found


def stamped(resources: Iterable[Resource], before: Iterable[Resource], now: datetime) -> tuple[Resource, ...]:
    """Return the resources with what an API server would set: a creation time, and a generation that counts changes."""
    known = {resource.identity: resource for resource in before}
    return tuple(_stamped(resource, known.get(resource.identity), now) for resource in resources)


def _stamped(resource: Resource, before: Resource | None, now: datetime) -> Resource:
    created, generation = timestamp(now), 1
    if before is not None:
        created = before.metadata.creation_timestamp or created
        generation = before.metadata.generation + (resource.spec != before.spec)
    update = {"creation_timestamp": created, "generation": generation}
    return resource.model_copy(update={"metadata": resource.metadata.model_copy(update=update)})


def remembered(status: Mapping[str, Any] | None) -> tuple[Resource, ...]:
    """Return the resources of a status file, with their statuses; those that this release cannot read are left out."""
    bodies = (status or {}).get("resources", ())
    return tuple(resource for body in bodies if (resource := parse_body(body)[0]) is not None)


def rows(resources: Sequence[Resource], statuses: Mapping[str, Status], doing: Mapping[str, str]) -> list[Row]:
    """Return a row per model and ensemble, pools last. `doing` says what is under way, by what clients call a model, or
    by its identity.
    """
    ordered = sorted(resources, key=lambda each: (_ORDER[each.kind], each.namespace, each.name))
    return [
        _row(
            resource,
            status,
            doing.get(resource.identity, "") or doing.get(_served_name(resource), ""),
        )
        for resource in ordered
        if (status := statuses.get(resource.identity)) is not None
    ]


def _served_name(resource: Resource) -> str:
    return resource.name if isinstance(resource, ServingPool) else resource.served_name


_ORDER = {"InferenceModel": 0, "Ensemble": 1, "ServingPool": 2}


def _row(resource: Resource, status: Status, doing: str) -> Row:
    ready = status.condition(ConditionType.READY)
    is_pool = isinstance(resource, ServingPool)
    return Row(
        kind=resource.kind,
        name=resource.name,
        version="" if isinstance(resource, ServingPool) else _version(resource.spec.default_version, status),
        ready=ready.status if ready else "Unknown",
        reason=ready.reason if ready else "",
        where="" if isinstance(resource, ServingPool) else _where(getattr(status, "placement", ())),
        message=ready.message if ready else "",
        doing="" if is_pool else doing,
        namespace=resource.namespace,
        served_name="" if isinstance(resource, ServingPool) else resource.served_name,
        **_scaling(getattr(status, "scaling", None)),
    )


def _scaling(scaling: ScalingStatus | None) -> dict[str, str]:
    """How many instances there are, why, and what changed last; nothing of what follows no measurements."""
    if scaling is None:
        return {}
    instances = str(scaling.instances) if scaling.instances > 1 else ""
    follows = bool(scaling.metric or scaling.history)
    newest = scaling.history[0].message if scaling.history else ""
    return {"instances": instances, "scaling": scaling.message if follows else "", "scaled": newest}


def _version(declared: int, status: Status) -> str:
    """The declared version; while another one serves, that one before it."""
    active = getattr(status, "active_version", None)
    return f"{active} → {declared}" if active not in (None, declared) else str(declared)


def _where(placement: Iterable[PlacementStatus]) -> str:
    return "; ".join(
        f"{each.server} GPU {','.join(map(str, each.gpus))}" if each.gpus else each.server for each in placement
    )


def all_ready(resources: Iterable[Resource], statuses: Mapping[str, Status]) -> bool:
    """Return whether every resource is Ready."""
    found = [statuses.get(resource.identity) for resource in resources]
    return all(status is not None and status.ready for status in found)


def any_stalled(statuses: Iterable[Status]) -> bool:
    """Return whether waiting alone will not make everything Ready."""
    stalled = (status.condition(ConditionType.STALLED) for status in statuses)
    return any(condition is not None and condition.status == "True" for condition in stalled)
