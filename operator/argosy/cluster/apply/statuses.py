"""A resource's status as it is sent, and written."""

from typing import Any

from argosy.api import API_VERSION, Resource
from argosy.api.status import Status
from argosy.cluster.client import kinds
from argosy.cluster.client.connection import Connection

STATUS_MANAGER = "argosy-status"


async def write_status(connection: Connection, resource: Resource, status: Status) -> bool:
    """Apply it. Whether it was this very resource's. Raises ApiError.

    Old API servers, such as the tests' own, do not look at the uid here: another's next status is written over this.
    """
    kind = kinds.RESOURCES[type(resource).__name__].status
    answer = await connection.apply(kind, status_body(resource, status), manager=STATUS_MANAGER)
    return bool(answer["metadata"]["uid"] == (resource.metadata.uid or answer["metadata"]["uid"]))


def status_body(resource: Resource, status: Status) -> dict[str, Any]:
    """Return what is applied to a resource's /status: of this very resource, by its uid, and the whole status.

    Empty texts are left out, which means the same: old API servers, such as the tests' own, take them for
    nulls where they apply to a custom resource, and then refuse those.
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
