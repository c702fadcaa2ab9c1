"""Environment variables of the containers."""

from typing import Any

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


def server_environment(*, on_cpu: bool) -> list[dict[str, Any]]:
    """The server's variables. One without GPUs of its own sees none: they are other servers'."""
    return [dict(HOME), *(dict(each) for each in NO_GPUS if on_cpu)]


def agent_environment() -> list[dict[str, Any]]:
    """The agent's variables; the storage's come from its Secret as a whole."""
    return [dict(HOME), dict(POD_UID)]
