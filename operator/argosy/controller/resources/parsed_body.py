"""A validated resource of the API server. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from argosy.api import (
    EnsembleStatus,
    InferenceModelStatus,
    ObjectMeta,
    Problem,
    Resource,
    ServingPoolStatus,
)
from argosy.api.documents import KINDS, parse_body
from argosy.api.status import Status
from argosy.api.values.meta import PoolReference


@dataclass(frozen=True, slots=True)
class ParsedBody:
    """One resource with its status. Where it is not `valid`, `newest` has only its metadata and its pool."""

    newest: Resource
    valid: bool
    problems: tuple[Problem, ...] = ()


def parsed_body(body: Mapping[str, Any]) -> ParsedBody:
    """Return the parsed object of one of the three kinds, also where its spec or status is invalid."""
    status = _status(body)
    parsed, problems = parse_body({key: value for key, value in body.items() if key != "status"})
    if parsed is None:
        return ParsedBody(_bare(body, status), valid=False, problems=tuple(problems))
    return ParsedBody(parsed.model_copy(update={"status": status}), valid=True, problems=tuple(problems))


def _bare(body: Mapping[str, Any], status: Status | None) -> Resource:
    """Return the metadata and the pool reference of a resource that cannot be parsed."""
    kind = KINDS[str(body["kind"])]
    metadata = ObjectMeta.model_validate(body["metadata"], by_alias=True, by_name=False)
    return kind.model_construct(metadata=metadata, spec=_pool_reference_only(body), status=status)


@dataclass(frozen=True, slots=True)
class _PoolReferenceOnly:
    """The valid part of a spec that cannot be parsed."""

    pool_ref: PoolReference | None = None


def _pool_reference_only(body: Mapping[str, Any]) -> _PoolReferenceOnly:
    spec = body.get("spec")
    reference = spec.get("poolRef") if isinstance(spec, Mapping) else None
    name = reference.get("name") if isinstance(reference, Mapping) else None
    return _PoolReferenceOnly(PoolReference.model_construct(name=name) if isinstance(name, str) and name else None)


def _status(body: Mapping[str, Any]) -> Status | None:
    """Return the stored status; None where it cannot be parsed, so that it is written again."""
    stored = body.get("status")
    if not stored:
        return None
    try:
        return _STATUSES[str(body["kind"])].model_validate(stored, by_alias=True, by_name=False)
    except ValueError:
        return None


_STATUSES: Mapping[str, type[InferenceModelStatus] | type[EnsembleStatus] | type[ServingPoolStatus]] = {
    "InferenceModel": InferenceModelStatus,
    "Ensemble": EnsembleStatus,
    "ServingPool": ServingPoolStatus,
}
