"""vLLM's environment on the node, as a volume of servers: images with it are gigabytes to build, pack and unpack."""

from pathlib import Path
from typing import Any

from argosy.environments.errors import EnvironmentFailedError
from argosy.environments.installing import Request, install
from argosy.environments.recipes import Device, recipe
from e2e.cluster.errors import ClusterUnavailableError
from e2e.cluster.programs.binaries import CACHE

FOLDER = CACHE / "engines"
PYTHON = "/usr/bin/python3"
"""The interpreter of images of the base, which Debian has in the same place."""
MOUNT = "/opt/argosy/engines"


def prepare() -> Path:
    """Install it, once for all runs. Raises ClusterUnavailableError."""
    try:
        install(Request(recipe("vllm", Device.CPU, lambda: False), FOLDER, PYTHON), lambda line: None)
    except EnvironmentFailedError as error:
        raise ClusterUnavailableError(f"vLLM's environment cannot be made for the node: {error}") from error
    return FOLDER


def pod_template(folder: Path, **variables: str) -> dict[str, Any]:
    """Return the template of servers that mount the folder, with these variables."""
    server = {
        "name": "server",
        "env": [{"name": name, "value": value} for name, value in variables.items()],
        "volumeMounts": [{"name": "engines", "mountPath": MOUNT, "readOnly": True}],
    }
    volume = {"name": "engines", "hostPath": {"path": str(folder), "type": "Directory"}}
    return {"spec": {"containers": [server], "volumes": [volume]}}
