"""The containers of a server's Pod: the inference server, bundled or NVIDIA's, and the agent that brings it models."""

from typing import Any

from argosy.api.pool.podtemplate import AGENT, SERVER
from argosy.api.pool.serverflags import setting_flags
from argosy.api.pool.tracing import tracing_flags
from argosy.api.servingpool import RuntimeName, ServingPool
from argosy.api.values.storage import file_path
from argosy.planning.nodes.slices import resource_of
from argosy.planning.plan import ServerPlan
from argosy.render.names import object_name, state_name
from argosy.render.workloads.pods import claims, control, nvidia, volumes
from argosy.render.workloads.pods.ending import DRAIN_FLAGS, ending_flags, lifecycle
from argosy.render.workloads.pods.inputs import Images
from argosy.render.workloads.pods.shared_memory import shared_memory_mounts
from argosy.render.workloads.pods.volumes import agent_mounts, server_mounts
from argosy.render.workloads.services import HTTP_PORT, PORTS
from argosy_agent.contract import RenderedRepository

_AGENT_REQUESTS = {"cpu": "50m", "memory": "128Mi"}
"""What it takes while nothing is fetched. No limit: a fetch may use what the node has left."""
HOME = {"name": "HOME", "value": volumes.TEMPORARY}
"""The only folder that may be written: caches of libraries go there."""
POD_UID = {"name": "POD_UID", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.uid"}}}
"""The Pod's own UID, in a variable."""
NO_GPUS = (
    # For the container runtime, which gives an image that asks for all GPUs all of them.
    {"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"},
    # For CUDA. Without a value it is set and empty; an empty value would be left out by the API server, and the object
    # never be as it was applied.
    {"name": "CUDA_VISIBLE_DEVICES"},
)
"""For a container that has none of the node's GPUs."""


def server_container(pool: ServingPool, plan: ServerPlan, images: Images) -> dict[str, Any]:
    """Return the container for one server of the plan."""
    runtime = pool.spec.runtime
    release = images.triton if runtime.name is RuntimeName.TRITON else images.bundled(on_gpu=bool(plan.gpus))
    container: dict[str, Any] = {
        "name": SERVER,
        "image": runtime.image or release,
        "imagePullPolicy": images.pull_policy,
        "command": control.server_command(runtime.name),
        "args": [
            *_server_arguments(runtime.name),
            *nvidia.memory_pool_flags(pool, plan, images),
            *setting_flags(pool.spec.rate_limit, pool.spec.cache),
            *tracing_flags(pool.spec.tracing),
            *volumes.api_key_flags(pool.spec.openai.api_keys),
            *runtime.args,
        ],
        "env": [*_server_environment(on_cpu=not plan.gpus), *nvidia.variables(pool, plan, images)],
        "ports": [{"name": name, "containerPort": port, "protocol": "TCP"} for name, port in PORTS.items()],
        **_probes(),
        **lifecycle(runtime.name),
        "volumeMounts": [*server_mounts(pool), *shared_memory_mounts(pool, plan, images)],
        "securityContext": container_security(),
    }
    return {**container, "resources": _gpus(plan)} if plan.gpus else container


def _gpus(plan: ServerPlan) -> dict[str, Any]:
    """Return the resources of the container of a server with GPUs."""
    if claims.has_claim(plan.gpus):
        return {"claims": claims.container_claims()}
    return {"limits": {resource_of(plan.gpus[0]): str(len(plan.gpus))}}


def _server_arguments(runtime: RuntimeName) -> list[str]:
    """Return the arguments of the server. Ready means that it answers, whatever becomes of a model.

    Which models may be requested is decided by the Pod's labels.
    """
    return [
        f"--model-repository={volumes.REPOSITORY}",
        "--model-control-mode=explicit",
        "--strict-readiness=false",
        *control.server_flags(runtime),
        *ending_flags(runtime),
        *(f"--{name}-port={port}" for name, port in PORTS.items()),
    ]


def _probes() -> dict[str, Any]:
    """Return the probes: ten minutes to start, for images that import much; one minute of silence, for
    a busy server.
    """
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


def agent_container(
    pool: ServingPool, plan: ServerPlan, repository: RenderedRepository, images: Images
) -> dict[str, Any]:
    """Return the container for one server of the plan."""
    return {
        "name": AGENT,
        "image": images.agent,
        "imagePullPolicy": images.pull_policy,
        "command": ["python", "-m", "argosy_agent"],
        "args": _agent_arguments(pool, plan),
        "env": _agent_environment(),
        "resources": {"requests": dict(_AGENT_REQUESTS)},
        "volumeMounts": agent_mounts(pool, repository),
        "securityContext": container_security(),
    }


def _agent_arguments(pool: ServingPool, plan: ServerPlan) -> list[str]:
    cache = pool.spec.storage.model_cache
    arguments = [
        f"--server=http://127.0.0.1:{HTTP_PORT}",
        f"--folder={volumes.MODELS}",
        f"--cache={volumes.CLAIMED_CACHE if cache.claim_name else volumes.CACHE}",
        f"--configmap={pool.namespace}/{object_name(plan.name)}",
        f"--state={pool.namespace}/{state_name(plan.name)}",
        "--pod=$(POD_UID)",
        f"--pvc-root={volumes.CLAIMS}",
        f"--secrets-root={volumes.NAMED_SECRETS}",
        *(f"--allowed-folder={folder}" for folder in _readable_folders(pool)),
        control.TOKEN_FLAG,
        *DRAIN_FLAGS,
    ]
    if cache.size_limit is not None:
        arguments.append(f"--cache-size={cache.size_limit}")
    if identity := _storage_identity(pool):
        arguments.append(f"--storage-identity={identity}")
    return arguments


def _readable_folders(pool: ServingPool) -> list[str]:
    """Return the folders of its Pod that the agent may read: what models may name, and the pool's own engines."""
    storage = pool.spec.storage
    engines = file_path(storage.engine_cache.storage_uri) if storage.engine_cache is not None else ""
    return list(dict.fromkeys([*storage.allowed_folders, *filter(None, [engines])]))


def _storage_identity(pool: ServingPool) -> str:
    """Return what tells the pool's credentials from another pool's of its namespace, with which it may
    share a cache.
    """
    storage = pool.spec.storage
    named = {"secret": storage.secret_name, "serviceaccount": storage.service_account_name}
    return ",".join(f"{kind}/{name}" for kind, name in named.items() if name)


def _server_environment(*, on_cpu: bool) -> list[dict[str, Any]]:
    """Return the server's variables. One without GPUs of its own sees none: they are other servers'."""
    return [dict(HOME), *(dict(variable) for variable in NO_GPUS if on_cpu)]


def _agent_environment() -> list[dict[str, Any]]:
    """Return the agent's variables. Credentials of the storage are files of its Secret, which follow a rotation."""
    return [dict(HOME), dict(POD_UID)]


def container_security() -> dict[str, Any]:
    """Return the security context of each container."""
    return {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
    }
