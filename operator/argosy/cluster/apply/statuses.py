"""Rendering and writing of resources' statuses."""

from typing import Any

from argosy.api import API_VERSION, Resource
from argosy.api.status import Status
from argosy.cluster.client import kinds
from argosy.cluster.client.connection import Connection

STATUS_MANAGER = "argosy-status"


async def write_status(connection: Connection, resource: Resource, status: Status) -> bool:
    """Apply a status. Return whether the resource of its uid received it. Raises ApiError.

    Old API servers do not check the uid here; the status of a recreated resource is then corrected by its next write.
    """
    kind = kinds.RESOURCES[type(resource).__name__].status
    answer = await connection.apply(kind, status_body(resource, status), manager=STATUS_MANAGER)
    return bool(answer["metadata"]["uid"] == (resource.metadata.uid or answer["metadata"]["uid"]))


def status_body(resource: Resource, status: Status) -> dict[str, Any]:
    """Return the body to apply to a resource's /status: its uid, so that no other one is meant, and the full status.

    Empty texts are left out, which means the same: old API servers take them for nulls in applied custom resources,
    and then refuse those.
    """
    metadata = {"namespace": resource.namespace, "name": resource.name, "uid": resource.metadata.uid}
    return {
        "apiVersion": API_VERSION,
        "kind": type(resource).__name__,
        "metadata": _without_empty_texts(metadata),
        "status": _without_empty_texts(status.model_dump(mode="json", by_alias=True, exclude_none=True)),
    }


def _without_empty_texts(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_empty_texts(inner) for name, inner in value.items() if inner != ""}
    return [_without_empty_texts(inner) for inner in value] if isinstance(value, list) else value
