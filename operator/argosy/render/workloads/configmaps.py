"""A server's two ConfigMaps: what it should hold, which only the operator writes, and what it has, the agent's."""

from typing import Any

from argosy.api.servingpool import ServingPool
from argosy.render.names import object_name, state_name
from argosy_runtime.agent.documents import DESIRED_KEY, repository_text

from .inputs import ServerWorkload
from .labels import server_labels
from .objects import owned
from .placement import PLACEMENT_ANNOTATION, placement_text
from .served import SERVED_ANNOTATION, served_text


def desired_configmap(pool: ServingPool, server: ServerWorkload) -> dict[str, Any]:
    """The repository that the agent is to bring about, where the server was placed, and what it last served."""
    name = server.plan.name
    annotations = {PLACEMENT_ANNOTATION: placement_text(server.plan)}
    if server.served:
        annotations[SERVED_ANNOTATION] = served_text(server.served)
    rendered = owned("v1", "ConfigMap", object_name(name), pool, server_labels(pool, name), annotations)
    return {**rendered, "data": {DESIRED_KEY: repository_text(server.repository)}}


def state_configmap(pool: ServingPool, server: str) -> dict[str, Any]:
    """An object for the agent to write into: without data here, so that applying it takes nothing away."""
    return owned("v1", "ConfigMap", state_name(server), pool, server_labels(pool, server))
