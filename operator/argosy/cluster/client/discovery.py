"""What an API server offers, where that differs: versions, and whether its CRDs are this release's, or newer.

The chart brings the CRDs unless it is told not to. Then, or where something else applied its own, they may be those of
an older release: the API server drops fields that it does not know, without a word.
"""

import logging
import re
from collections.abc import Iterator, Mapping
from typing import Any

from argosy.api import API_VERSION, VERSION
from argosy.api.crd.crds import DEFINITIONS, crd
from argosy.render.workloads import Cluster

from .connection import Connection
from .errors import ForbiddenError, NotFoundError
from .kinds import CRD

log = logging.getLogger(__name__)

WAY_OUT = "run: kubectl apply -f crds/"
_SHOWN = 5
_ENDS_JOBS, _JUDGES_FAILURES, _EVICTS_UNREADY = (1, 21), (1, 26), (1, 27)
"""The versions of Kubernetes from which on every Job may have `ttlSecondsAfterFinished`, every Job `podFailurePolicy`,
and every PodDisruptionBudget `unhealthyPodEvictionPolicy`."""


async def offered(connection: Connection) -> Cluster:
    """Return what the API server offers. Raises ApiError."""
    newest = "poddisruptionbudgets" in await plurals(connection, "policy/v1")
    version = release(await connection.ask("/version"))
    return Cluster(
        "policy/v1" if newest else "policy/v1beta1",
        evicts_unready=version >= _EVICTS_UNREADY,
        ends_jobs=version >= _ENDS_JOBS,
        judges_failures=version >= _JUDGES_FAILURES,
    )


def release(said: Mapping[str, Any]) -> tuple[int, int]:
    """Major and minor of what /version says; some providers write the latter as `27+`."""
    major, minor = (int(re.sub("[^0-9]", "", said[part]) or 0) for part in ("major", "minor"))
    return major, minor


async def plurals(connection: Connection, api_version: str) -> frozenset[str]:
    """Return what a version of an API has, as paths call it; nothing where the API server does not know the version."""
    try:
        found = await connection.ask(f"/apis/{api_version}")
    except NotFoundError:
        return frozenset()
    return frozenset(str(each["name"]) for each in found["resources"])


async def crd_problems(connection: Connection) -> list[str]:
    """Return what is wrong with Argosy's CRDs: missing, or without fields of this release. Each with the way out.

    Raises ApiError where that cannot be found out.
    """
    served = await plurals(connection, API_VERSION)
    found: list[str] = []
    for definition in DEFINITIONS:
        expected = crd(definition)
        if definition.plural not in served:
            found.append(f"the CRD {expected['metadata']['name']} is missing, or does not serve {VERSION}; {WAY_OUT}")
        else:
            found += await _problems(connection, expected)
    return found


async def _problems(connection: Connection, expected: Mapping[str, Any]) -> list[str]:
    name = expected["metadata"]["name"]
    try:
        installed = await connection.get(CRD, ("", name))
    except ForbiddenError as error:
        log.warning("whether %s is this release's cannot be checked: %s", name, error)
        return []
    except NotFoundError:
        return []  # removed since discovery; the next look says so
    lacking = list(lacks(_schema(installed), _schema(expected)))
    if not lacking:
        return []
    more = f" and {len(lacking) - _SHOWN} more" if len(lacking) > _SHOWN else ""
    return [f"the CRD {name} is older than this release: it lacks {', '.join(lacking[:_SHOWN])}{more}; {WAY_OUT}"]


def lacks(installed: Mapping[str, Any], expected: Mapping[str, Any], path: str = "") -> Iterator[str]:
    """Yield the fields of the expected schema that the installed one has not, or with another type: `spec.poolRef`."""
    have = installed.get("properties") or {}
    for name, schema in (expected.get("properties") or {}).items():
        place = f"{path}.{name}" if path else name
        there = have.get(name)
        if there is None:
            if not installed.get("x-kubernetes-preserve-unknown-fields"):
                yield place
        elif there.get("type") != schema.get("type"):
            yield f"{place} as {schema.get('type', 'any value')}"
        else:
            yield from lacks(there, schema, place)
    for part, shown in (("items", "[]"), ("additionalProperties", "{}")):
        if isinstance(expected.get(part), Mapping) and isinstance(installed.get(part), Mapping):
            yield from lacks(installed[part], expected[part], path + shown)


def _schema(definition: Mapping[str, Any]) -> Mapping[str, Any]:
    versions = definition["spec"]["versions"]
    found: Mapping[str, Any] = next((version for version in versions if version["name"] == VERSION), {})
    schema: Mapping[str, Any] = (found.get("schema") or {}).get("openAPIV3Schema") or {}
    return schema
