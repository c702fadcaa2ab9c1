"""Which versions an API server offers, and which groups it knows."""

from collections.abc import Awaitable, Callable
from typing import Any

from argosy.render.workloads import Cluster

from .errors import NotFoundError

Get = Callable[[str], Awaitable[dict[str, Any]]]
"""Reads one path."""


async def cluster(get: Get) -> Cluster:
    """What the API server offers. Raises ApiError."""
    newest = "poddisruptionbudgets" in await plurals(get, "policy/v1")
    return Cluster(pdb_version="policy/v1" if newest else "policy/v1beta1")


async def plurals(get: Get, api_version: str) -> frozenset[str]:
    """What a version of an API has, as paths call it; nothing where the API server does not know the version."""
    try:
        found = await get(f"/apis/{api_version}")
    except NotFoundError:
        return frozenset()
    return frozenset(str(each["name"]) for each in found["resources"])
