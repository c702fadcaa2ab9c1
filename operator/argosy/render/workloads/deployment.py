"""A server's Deployment: one replica, so that any server can be retired, not just the last."""

from typing import Any

from argosy.api.servingpool import ServingPool
from argosy.render.names import object_name

from .inputs import Images, ServerWorkload
from .labels import pods_of_server, server_labels
from .objects import owned
from .pod_template import TEMPLATE_ANNOTATION, pod_template, template_hash

_PROGRESS_S = 3600
"""How long a new Pod may take until it counts as stuck: images of tens of gigabytes, and models after them."""


def deployment(pool: ServingPool, server: ServerWorkload, images: Images) -> dict[str, Any]:
    """The Deployment of one server.

    A new Pod waits for the old one to end: with no spare GPU it would wait for ever beside it, and a server has one
    state, which two agents cannot write. Models with replicas go on on other servers meanwhile.
    """
    name = server.plan.name
    template = pod_template(pool, server.plan, server.repository, images)
    annotations = {TEMPLATE_ANNOTATION: template_hash(template)}
    spec = {
        "replicas": 1,
        "revisionHistoryLimit": 1,
        "progressDeadlineSeconds": _PROGRESS_S,
        "strategy": {"type": "Recreate"},
        "selector": {"matchLabels": pods_of_server(pool, name)},
        "template": template,
    }
    return {
        **owned("apps/v1", "Deployment", object_name(name), pool, server_labels(pool, name), annotations),
        "spec": spec,
    }
