"""Environment variables of the containers."""

from typing import Any

from argosy.api.servingpool import EnvVar, ServingPool

from .addresses import TEMPORARY

HOME = {"name": "HOME", "value": TEMPORARY}
"""The only folder that may be written: caches of libraries go there."""
POD_UID = {"name": "POD_UID", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.uid"}}}
NO_GPUS = (
    # For the container runtime, which gives an image that asks for all GPUs all of them.
    {"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"},
    # For CUDA. Without a value it is set and empty; an empty value would be left out by the API server, and the object
    # never be as it was applied.
    {"name": "CUDA_VISIBLE_DEVICES"},
)


def server_environment(pool: ServingPool, *, on_cpu: bool) -> list[dict[str, Any]]:
    """The server's variables: ours, and over them the pool's.

    Only that a server without GPUs of its own sees none is not for the pool to change: they are other servers'.
    """
    merged = {HOME["name"]: dict(HOME)}
    merged.update({variable.name: _variable(variable) for variable in pool.spec.runtime.env})
    if on_cpu:
        merged.update({variable["name"]: dict(variable) for variable in NO_GPUS})
    return list(merged.values())


def agent_environment() -> list[dict[str, Any]]:
    """The agent's variables; the storage's come from its Secret as a whole."""
    return [dict(HOME), dict(POD_UID)]


def _variable(variable: EnvVar) -> dict[str, Any]:
    rendered: dict[str, Any] = {"name": variable.name}
    if variable.value:
        rendered["value"] = variable.value
    source = variable.value_from
    if source is not None:
        rendered["valueFrom"] = source.model_dump(mode="json", by_alias=True, exclude_none=True)
    return rendered
