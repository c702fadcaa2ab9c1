"""Whether the cluster's CRDs are those of this release, or newer.

The chart brings them unless it is told not to. Then, or where something else applied its own, they may be those of an
older release: the API server drops fields that it does not know, without a word.
"""

import logging
from collections.abc import Iterator, Mapping
from typing import Any

from argosy.api import API_VERSION, VERSION
from argosy.api.crds import DEFINITIONS, crd

from .discovery import Get, plurals
from .errors import ForbiddenError, NotFoundError
from .kinds import CRD

log = logging.getLogger(__name__)

WAY_OUT = "run: kubectl apply -f crds/"
_SHOWN = 5


async def problems(get: Get) -> list[str]:
    """What is wrong, each with the way out. Raises ApiError where that cannot be found out."""
    served = await plurals(get, API_VERSION)
    found: list[str] = []
    for definition in DEFINITIONS:
        expected = crd(definition)
        if definition.plural not in served:
            found.append(f"the CRD {expected['metadata']['name']} is missing, or does not serve {VERSION}; {WAY_OUT}")
        else:
            found += await _problems(get, expected)
    return found


async def _problems(get: Get, expected: Mapping[str, Any]) -> list[str]:
    name = expected["metadata"]["name"]
    try:
        installed = await get(CRD.path(name=name))
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
    """The fields of the expected schema that the installed one has not, or with another type: `spec.poolRef`."""
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
