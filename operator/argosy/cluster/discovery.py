"""Which versions an API server offers, and which groups it knows."""

import re
from collections.abc import Awaitable, Callable
from typing import Any

from argosy.render.workloads import Cluster

from .errors import NotFoundError

Get = Callable[[str], Awaitable[dict[str, Any]]]
"""Reads one path."""
_EVICTS_UNREADY = (1, 27)
"""The version of Kubernetes from which on every PodDisruptionBudget may have `unhealthyPodEvictionPolicy`."""


async def cluster(get: Get) -> Cluster:
    """What the API server offers. Raises ApiError."""
    newest = "poddisruptionbudgets" in await plurals(get, "policy/v1")
    return Cluster("policy/v1" if newest else "policy/v1beta1", await _version(get) >= _EVICTS_UNREADY)


async def _version(get: Get) -> tuple[int, int]:
    """Major and minor; some providers write the latter as `27+`."""
    found = await get("/version")
    major, minor = (int(re.sub("[^0-9]", "", found[part]) or 0) for part in ("major", "minor"))
    return major, minor


async def plurals(get: Get, api_version: str) -> frozenset[str]:
    """What a version of an API has, as paths call it; nothing where the API server does not know the version."""
    try:
        found = await get(f"/apis/{api_version}")
    except NotFoundError:
        return frozenset()
    return frozenset(str(each["name"]) for each in found["resources"])
