"""The PodDisruptionBudget of a pool."""

from typing import Any

from argosy.api.servingpool import ServingPool

from .inputs import Cluster
from .labels import pods_of_pool, pool_labels
from .objects import owned


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
