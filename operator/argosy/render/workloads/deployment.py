"""A server's Deployment, of one replica, so that any server can be retired; and the budget of disruptions of a pool."""

from typing import Any

from argosy.api.servingpool import ServingPool
from argosy.render.names import object_name

from .inputs import Cluster, Images, ServerWorkload
from .metadata import owned, pods_of_pool, pods_of_server, pool_labels, server_labels
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


def disruption_budget(pool: ServingPool, cluster: Cluster) -> dict[str, Any]:
    """One server of a pool at a time may be taken by a node's drain.

    As a number that may go, not one that must stay: a pool of one server does not hold up the drain. Nor does a server
    that is not ready, where the API server knows the field for that; an older one refuses it. A pool without servers
    keeps the budget, and it holds for the first that comes.
    """
    budget = owned(cluster.pdb_version, "PodDisruptionBudget", pool.name, pool, pool_labels(pool))
    spec: dict[str, Any] = {"maxUnavailable": 1, "selector": {"matchLabels": pods_of_pool(pool)}}
    if cluster.evicts_unready:
        spec["unhealthyPodEvictionPolicy"] = "AlwaysAllow"
    return {**budget, "spec": spec}
