"""The revision of a spec: what answers the requests of a model or an ensemble.

Fields that a server changes in place, and those that say how much there is to be of it, are not part of it. They are
acted upon as they are declared, whichever revision is served.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from argosy.api import InferenceModel, InferenceModelSpec, Member
from argosy.api.model.footprint import Footprint
from argosy.api.model.placement import GpuType
from argosy.api.values.derived import cached_with_spec
from argosy.rollout.state import Revision

_AMOUNTS = frozenset(
    {
        "pool_ref",
        "model_name",
        "replicas",
        "min_replicas",
        "max_replicas",
        "node_selector",
        "topology_spread",
        "affinity",
        "anti_affinity",
        "scaling",
        "slo",
        "priority",
        "rollout",
        "revision_history_limit",
    }
)
_OF_MODELS = frozenset(
    {"storage", "version_policy", "batching", "instances", "instance_groups", "rate_limiter", "traffic", "adapters"}
)
_DEPENDS: Mapping[str, tuple[str, ...]] = {
    "batching": ("max_batch_size", "sequence"),
    "instances": ("footprint", "parallelism"),
    "instance_groups": ("footprint", "parallelism"),
    "rate_limiter": ("footprint", "parallelism"),
    "storage": ("version", "versions", "storage_uri"),
}
"""Fields that are as declared only where these are alike in both specs: they must fit to them."""
_DIGITS = 10


def revision_of(member: Member, pins: Mapping[str, int] | None = None) -> Revision:
    """Return the revision of a spec. `pins`: of an ensemble, the versions of its steps' models, by name."""
    return Revision(_name(member, tuple(sorted((pins or {}).items()))), member.spec.default_version)


def with_declared(stable: Member, declared: Member) -> Member:
    """Return the declared resource with what answers requests as in the stable spec."""
    if stable.spec is declared.spec:
        return declared
    spec = _merged(stable, _Spec(declared))
    return declared.model_copy(update={"spec": spec})


class _Spec:
    """A cache key: equal for the same spec object, which is frozen, of one kind of resource."""

    __slots__ = ("member",)

    def __init__(self, member: Member) -> None:
        self.member = member

    def __hash__(self) -> int:
        return hash(id(self.member.spec))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Spec) and self.member.spec is other.member.spec


@cached_with_spec
def _name(member: Member, pins: tuple[tuple[str, int], ...]) -> str:
    """Return the hash of the part of a spec that answers requests. Fields with their default value count as absent, so
    that a resource that was stored with all of its fields is the same revision.
    """
    left_out: dict[str, Any] = dict.fromkeys(declared_fields(member), True) | {"footprint": {"gpu_type"}}
    part = member.spec.model_dump(mode="json", by_alias=True, exclude=left_out, exclude_defaults=True)
    if _gpu_type(member.spec) is not None and not part["footprint"]:
        del part["footprint"]
    text = json.dumps([member.kind, part, pins], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]


def changed_fields(stable: Member, declared: Member) -> list[str]:
    """Return the fields of a revision that differ between two specs, as the API names them."""
    fields = type(declared.spec).model_fields
    differ = (
        name
        for name in fields
        if name not in declared_fields(declared) and not _alike(stable.spec, declared.spec, name)
    )
    return sorted(fields[name].alias or name for name in differ)


def declared_fields(member: Member) -> frozenset[str]:
    """Return the fields of a spec that are no part of a revision."""
    return _AMOUNTS | _OF_MODELS if isinstance(member, InferenceModel) else _AMOUNTS


def _gpu_type(spec: Any) -> GpuType | None:
    """Return where a model may run, which is no part of its revision though its footprint is; None for an ensemble."""
    footprint = getattr(spec, "footprint", None)
    return footprint.gpu_type if footprint is not None else None


def _alike(one: Any, other: Any, field: str) -> bool:
    """Return whether a field answers requests alike in two specs."""
    values = [getattr(spec, field) for spec in (one, other)]
    if field == "footprint":
        values = [(value or Footprint()).model_copy(update={"gpu_type": None}) for value in values]
    return bool(values[0] == values[1])


@cached_with_spec
def _merged(stable: Member, declared: _Spec) -> object:
    """Return the stable spec with the declared one's fields that are no part of a revision; the same object for the
    same specs, by which rendered texts are cached.
    """
    old, new = stable.spec, declared.member.spec
    taken = {
        field: getattr(new, field)
        for field in declared_fields(declared.member)
        if all(_alike(old, new, other) for other in _DEPENDS.get(field, ()))
    }
    if isinstance(old, InferenceModelSpec) and _gpu_type(old) != _gpu_type(new):
        taken["footprint"] = (old.footprint or Footprint()).model_copy(update={"gpu_type": _gpu_type(new)})
    return old.model_copy(update=taken)
