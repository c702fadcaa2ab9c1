"""The NetworkPolicy of a pool."""

from typing import Any

from argosy.api.servingpool import ServingPool

from .addresses import PORTS
from .labels import pods_of_pool, pool_labels
from .objects import owned


def network_policy(pool: ServingPool) -> dict[str, Any]:
    """By the server's ports anyone may come in, and by no other.

    Not only Pods: ingress controllers on the host's network, load balancers and the API server's proxy have addresses
    that no selector names. What goes out is open: nobody knows where models are stored.
    """
    policy = owned("networking.k8s.io/v1", "NetworkPolicy", pool.name, pool, pool_labels(pool))
    ingress = {"ports": [{"port": port, "protocol": "TCP"} for port in PORTS.values()]}
    spec = {"podSelector": {"matchLabels": pods_of_pool(pool)}, "policyTypes": ["Ingress"], "ingress": [ingress]}
    return {**policy, "spec": spec}
