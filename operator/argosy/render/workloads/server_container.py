"""The container with the inference server: the bundled one or NVIDIA's, told the same things."""

from typing import Any

from argosy.api.podtemplate import SERVER
from argosy.api.serverflags import setting_flags
from argosy.api.servingpool import RuntimeName, ServingPool
from argosy.fleet.plan import ServerPlan

from .addresses import PORTS, REPOSITORY
from .ending import ending_flags, lifecycle
from .environment import server_environment
from .inputs import Images
from .security import container_security
from .volumes import server_mounts

GPU_RESOURCE = "nvidia.com/gpu"
_COMMANDS = {
    RuntimeName.ARGOSY: ["python", "-m", "argosy_runtime.server"],
    RuntimeName.TRITON: ["tritonserver"],
}


def server_container(pool: ServingPool, plan: ServerPlan, images: Images) -> dict[str, Any]:
    """The container for one server of the plan."""
    runtime = pool.spec.runtime
    release = images.triton if runtime.name is RuntimeName.TRITON else images.argosy
    container: dict[str, Any] = {
        "name": SERVER,
        "image": runtime.image or release,
        "imagePullPolicy": images.pull_policy,
        "command": list(_COMMANDS[runtime.name]),
        "args": [*_arguments(runtime.name), *setting_flags(pool.spec.rate_limit, pool.spec.cache), *runtime.args],
        "env": server_environment(on_cpu=not plan.gpus),
        "ports": [{"name": name, "containerPort": port, "protocol": "TCP"} for name, port in PORTS.items()],
        **_probes(),
        **lifecycle(runtime.name),
        "volumeMounts": server_mounts(),
        "securityContext": container_security(),
    }
    gpus = {"resources": {"limits": {GPU_RESOURCE: str(len(plan.gpus))}}} if plan.gpus else {}
    return {**container, **gpus}


def _arguments(runtime: RuntimeName) -> list[str]:
    """Ready means that the server answers, whatever becomes of a model: one that loads or fails stops no other.

    Which models may be asked for is said by the Pod's labels.
    """
    return [
        f"--model-repository={REPOSITORY}",
        "--model-control-mode=explicit",
        "--strict-readiness=false",
        *ending_flags(runtime),
        *(f"--{name}-port={port}" for name, port in PORTS.items()),
    ]


def _probes() -> dict[str, Any]:
    """Ten minutes to start, for images that import much; one minute of silence, for one that is busy."""
    return {
        "startupProbe": _probe("live", period=2, timeout=5, failures=300),
        "livenessProbe": _probe("live", period=10, timeout=10, failures=6),
        "readinessProbe": _probe("ready", period=5, timeout=5, failures=3),
    }


def _probe(path: str, *, period: int, timeout: int, failures: int) -> dict[str, Any]:
    return {
        "httpGet": {"path": f"/v2/health/{path}", "port": "http"},
        "periodSeconds": period,
        "timeoutSeconds": timeout,
        "failureThreshold": failures,
    }
