"""What an API server supports: versions, and whether it has the CRDs of this release or a newer one.

The chart installs the CRDs unless that is disabled. Installed CRDs may be older than this release: the API server then
silently drops unknown fields.
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
from .kinds import CRD, DEVICE_TAINT_RULE, INFERENCE_POOL, RESOURCE_SLICE

log = logging.getLogger(__name__)

WAY_OUT = "run: kubectl apply -f crds/"
_SHOWN = 5
_ENDS_JOBS, _JUDGES_FAILURES, _EVICTS_UNREADY = (1, 21), (1, 26), (1, 27)
"""The versions of Kubernetes since which every Job may have `ttlSecondsAfterFinished`, every Job `podFailurePolicy`,
and every PodDisruptionBudget `unhealthyPodEvictionPolicy`."""


async def offered(connection: Connection) -> Cluster:
    """Return what the API server supports. Raises ApiError."""
    newest = "poddisruptionbudgets" in await plurals(connection, "policy/v1")
    version = release(await connection.get_raw("/version"))
    devices = await plurals(connection, RESOURCE_SLICE.api_version)
    return Cluster(
        "policy/v1" if newest else "policy/v1beta1",
        evicts_unready=version >= _EVICTS_UNREADY,
        ends_jobs=version >= _ENDS_JOBS,
        judges_failures=version >= _JUDGES_FAILURES,
        inference_pools=INFERENCE_POOL.plural in await plurals(connection, INFERENCE_POOL.api_version),
        device_claims=RESOURCE_SLICE.plural in devices,
        device_taint_rules=DEVICE_TAINT_RULE.plural in devices,
    )


def release(version: Mapping[str, Any]) -> tuple[int, int]:
    """Return major and minor of a document of /version; some providers write the latter as `27+`."""
    major, minor = (int(re.sub("[^0-9]", "", version[part]) or 0) for part in ("major", "minor"))
    return major, minor


async def plurals(connection: Connection, api_version: str) -> frozenset[str]:
    """Return the plurals of an API version's resources; empty where the API server does not have the version."""
    try:
        document = await connection.get_raw(f"/apis/{api_version}")
    except NotFoundError:
        return frozenset()
    return frozenset(str(resource["name"]) for resource in document.get("resources") or ())


async def crd_problems(connection: Connection) -> list[str]:
    """Return the problems of Argosy's CRDs, missing or without fields of this release, with what to do.

    Raises ApiError.
    """
    served = await plurals(connection, API_VERSION)
    problems: list[str] = []
    for definition in DEFINITIONS:
        expected = crd(definition)
        if definition.plural not in served:
            problems.append(
                f"the CRD {expected['metadata']['name']} is missing, or does not serve {VERSION}; {WAY_OUT}"
            )
        else:
            problems += await _problems(connection, expected)
    return problems


async def _problems(connection: Connection, expected: Mapping[str, Any]) -> list[str]:
    name = expected["metadata"]["name"]
    try:
        installed = await connection.get(CRD, ("", name))
    except ForbiddenError as error:
        log.warning("whether %s is this release's cannot be checked: %s", name, error)
        return []
    except NotFoundError:
        return []  # removed since discovery; the next check reports it
    lacking = list(lacks(_schema(installed), _schema(expected)))
    if not lacking:
        return []
    more = f" and {len(lacking) - _SHOWN} more" if len(lacking) > _SHOWN else ""
    return [f"the CRD {name} is older than this release: it lacks {', '.join(lacking[:_SHOWN])}{more}; {WAY_OUT}"]


def lacks(installed: Mapping[str, Any], expected: Mapping[str, Any], path: str = "") -> Iterator[str]:
    """Yield the expected schema's fields that the installed one lacks or has with another type: `spec.poolRef`."""
    properties = installed.get("properties") or {}
    for name, schema in (expected.get("properties") or {}).items():
        field = f"{path}.{name}" if path else name
        actual = properties.get(name)
        if actual is None:
            if not installed.get("x-kubernetes-preserve-unknown-fields"):
                yield field
        elif actual.get("type") != schema.get("type"):
            yield f"{field} as {schema.get('type', 'any value')}"
        else:
            yield from lacks(actual, schema, field)
    for part, shown in (("items", "[]"), ("additionalProperties", "{}")):
        if isinstance(expected.get(part), Mapping) and isinstance(installed.get(part), Mapping):
            yield from lacks(installed[part], expected[part], path + shown)


def _schema(definition: Mapping[str, Any]) -> Mapping[str, Any]:
    versions = definition["spec"]["versions"]
    served: Mapping[str, Any] = next((version for version in versions if version["name"] == VERSION), {})
    schema: Mapping[str, Any] = (served.get("schema") or {}).get("openAPIV3Schema") or {}
    return schema
