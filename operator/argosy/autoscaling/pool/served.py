"""What of a pool's models memory is short or enough for, from their specs, what servers have loaded, and the plan."""

from collections.abc import Iterable, Mapping

from argosy.api import InferenceModel, Resource
from argosy.api.model.footprint import Footprint
from argosy.api.status import InferenceModelStatus
from argosy.api.values.quantity import format_percent
from argosy.autoscaling.policy import Served
from argosy.autoscaling.pool.grants import Grant
from argosy_common.quantity import format_bytes


def served(
    members: Iterable[Resource], statuses: Mapping[str, object], grants: Mapping[str, Grant]
) -> dict[str, Served]:
    """Of each model, by identity as the mappings are. A status tells the versions that servers have loaded."""
    return {
        member.identity: Served(
            versions=_loaded(statuses.get(member.identity)),
            footprint=_footprint(member.spec.footprint or Footprint()),
            gpu_memory=grants[member.identity].gpu_memory if member.identity in grants else 0,
        )
        for member in members
        if isinstance(member, InferenceModel)
    }


def _loaded(status: object) -> tuple[int, ...]:
    if not isinstance(status, InferenceModelStatus):
        return ()
    return tuple(sorted(member.version for member in status.versions if member.available_replicas))


def _footprint(declared: Footprint) -> str:
    """As it is declared, such as `gpuMemory 4Gi, compute 20%`."""
    parts = (
        ("device", declared.device),
        ("gpuMemory", None if declared.gpu_memory is None else format_bytes(declared.gpu_memory)),
        ("compute", None if declared.compute is None else format_percent(declared.compute)),
        ("gpus", declared.gpus),
    )
    return ", ".join(f"{name} {value}" for name, value in parts if value is not None) or "not declared"
