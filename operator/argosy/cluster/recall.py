"""What an earlier process of the operator left for the next one: last valid forms of resources that are wrong now."""

from collections.abc import Collection
from typing import Any

from argosy.render.workloads import LAST_VALID_LABEL, parse_last_valid

from .connection import Connection


async def last_valid_forms(connection: Connection, namespaces: Collection[str] = ()) -> list[dict[str, Any]]:
    """Resources' bodies, from these namespaces or, without them, from all. Raises ApiError."""
    paths = [f"/api/v1/namespaces/{namespace}/configmaps" for namespace in namespaces] or ["/api/v1/configmaps"]
    forms: list[dict[str, Any]] = []
    for path in paths:
        async for page in connection.pages(path, {"labelSelector": f"{LAST_VALID_LABEL}=true"}):
            forms += [body for configmap in page["items"] for body in parse_last_valid(configmap)]
    return forms
