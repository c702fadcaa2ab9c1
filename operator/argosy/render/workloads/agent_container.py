"""The container with the agent, which brings models to the server beside it."""

from typing import Any

from argosy.api.podtemplate import AGENT
from argosy.api.servingpool import ServingPool
from argosy.fleet.plan import ServerPlan
from argosy.render.names import object_name, state_name
from argosy_runtime.agent.contract import RenderedRepository

from . import addresses
from .ending import DRAIN_FLAGS
from .environment import agent_environment
from .inputs import Images
from .security import container_security
from .volumes import agent_mounts

_REQUESTS = {"cpu": "50m", "memory": "128Mi"}
"""What it takes while nothing is fetched. No limit: a fetch may use what the node has left."""


def agent_container(
    pool: ServingPool, plan: ServerPlan, repository: RenderedRepository, images: Images
) -> dict[str, Any]:
    """The container for one server of the plan."""
    container: dict[str, Any] = {
        "name": AGENT,
        "image": images.agent,
        "imagePullPolicy": images.pull_policy,
        "command": ["python", "-m", "argosy_runtime.agent"],
        "args": _arguments(pool, plan),
        "env": agent_environment(),
        "resources": {"requests": dict(_REQUESTS)},
        "volumeMounts": agent_mounts(pool, repository),
        "securityContext": container_security(),
    }
    secret = pool.spec.storage.secret_name
    return {**container, "envFrom": [{"secretRef": {"name": secret}}]} if secret else container


def _arguments(pool: ServingPool, plan: ServerPlan) -> list[str]:
    cache = pool.spec.storage.model_cache
    arguments = [
        f"--server=http://127.0.0.1:{addresses.HTTP_PORT}",
        f"--folder={addresses.MODELS}",
        f"--cache={addresses.CLAIMED_CACHE if cache.claim_name else addresses.CACHE}",
        f"--configmap={pool.namespace}/{object_name(plan.name)}",
        f"--state={pool.namespace}/{state_name(plan.name)}",
        "--pod=$(POD_UID)",
        f"--pvc-root={addresses.CLAIMS}",
        *DRAIN_FLAGS,
    ]
    if cache.size_limit is not None:
        arguments.append(f"--cache-size={cache.size_limit}")
    return arguments
