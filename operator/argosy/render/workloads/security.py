"""Security contexts: what Kubernetes' restricted Pod Security Standard asks for, and a root file system that stays."""

from typing import Any

_USER = 1000
"""Who runs: not root, and the same in the bundled image and NVIDIA's."""


def pod_security() -> dict[str, Any]:
    """For the whole Pod. Volumes belong to its group, so that both containers may use them."""
    return {
        "runAsNonRoot": True,
        "runAsUser": _USER,
        "runAsGroup": _USER,
        "fsGroup": _USER,
        "fsGroupChangePolicy": "OnRootMismatch",
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def container_security() -> dict[str, Any]:
    """For each container."""
    return {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
    }
