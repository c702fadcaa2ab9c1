"""The PodDisruptionBudget of a pool."""

from typing import Any

from argosy.api.servingpool import ServingPool

from .inputs import Cluster
from .labels import pods_of_pool, pool_labels
from .objects import owned


def disruption_budget(pool: ServingPool, cluster: Cluster) -> dict[str, Any]:
    """One server of a pool at a time may be taken by a node's drain.

    As a number that may go, not one that must stay: a pool of one server does not hold up the drain. A pool without
    servers keeps it, and it holds for the first that comes.
    """
    budget = owned(cluster.pdb_version, "PodDisruptionBudget", pool.name, pool, pool_labels(pool))
    return {**budget, "spec": {"maxUnavailable": 1, "selector": {"matchLabels": pods_of_pool(pool)}}}
