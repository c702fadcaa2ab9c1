"""Control of a server: by its Pod's agent alone, by a token that the Pod makes for itself and keeps in memory.

A container before the others writes a random token to a volume that the server and the agent read. So the token is in
no object of the cluster, no status, log or command line of ours, no two servers share one, and it goes with the Pod.
"""

from typing import Any

from argosy.api.pool.podtemplate import CONTROL_TOKEN
from argosy.api.servingpool import RuntimeName
from argosy.render.workloads.pods.inputs import Images

FOLDER = "/secrets/control"
TOKEN_FILE = f"{FOLDER}/token"
TOKEN_FLAG = f"--control-token-file={TOKEN_FILE}"
"""Of the bundled server, which then refuses control without the token, and of the agent, which sends it."""
_REQUESTS = {"cpu": "50m", "memory": "64Mi"}
_RESTRICTED = "model-repository,logging,trace,shared-memory"
"""The groups of NVIDIA's server that change it."""


def token_volume() -> dict[str, Any]:
    """Return the volume with the token; in memory, so that no disk has it."""
    return {"name": CONTROL_TOKEN, "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}}


def token_mount() -> dict[str, Any]:
    """Return where the server and the agent read the token."""
    return {"name": CONTROL_TOKEN, "mountPath": FOLDER, "readOnly": True}


def token_container(images: Images, security: dict[str, Any]) -> dict[str, Any]:
    """Return the container that makes the token, and ends before the others start."""
    return {
        "name": CONTROL_TOKEN,
        "image": images.agent,
        "imagePullPolicy": images.pull_policy,
        "command": ["python", "-m", "argosy_agent.controltoken", TOKEN_FILE],
        "resources": {"requests": dict(_REQUESTS)},
        "volumeMounts": [{"name": CONTROL_TOKEN, "mountPath": FOLDER}],
        "securityContext": security,
    }


def server_command(runtime: RuntimeName) -> list[str]:
    """Return the command that starts a server, without its arguments."""
    if runtime is RuntimeName.ARGOSY:
        return ["python", "-m", "argosy_runtime.server"]
    # NVIDIA's server takes a restriction on its command line alone, so processes of its own container can see it.
    return ["bash", "-c", restricted("tritonserver", TOKEN_FILE), "bash"]


def server_flags(runtime: RuntimeName) -> list[str]:
    """Return the flags by which a server learns of its token; NVIDIA's has them from its command."""
    return [TOKEN_FLAG] if runtime is RuntimeName.ARGOSY else []


def restricted(program: str, token_file: str) -> str:
    """Return a line of bash that becomes NVIDIA's server, with the line's arguments and its control restricted to the
    holders of the token in a file.
    """
    value = f"{_RESTRICTED}:authorization=Bearer $token"
    flags = f'"--http-restricted-api={value}" "--grpc-restricted-protocol={value}"'
    return f'set -e; read -r token < {token_file}; exec {program} "$@" {flags}'
