"""The NetworkPolicy of a pool."""

from typing import Any

from argosy.api.servingpool import ServingPool

from .addresses import PORTS
from .labels import pods_of_pool, pool_labels
from .objects import owned


def network_policy(pool: ServingPool) -> dict[str, Any]:
    """Any Pod of the cluster may come in by the server's ports, and nothing else.

    What goes out is open: nobody knows where models are stored.
    """
    policy = owned("networking.k8s.io/v1", "NetworkPolicy", pool.name, pool, pool_labels(pool))
    ingress = {
        "from": [{"namespaceSelector": {}}],
        "ports": [{"port": port, "protocol": "TCP"} for port in PORTS.values()],
    }
    spec = {"podSelector": {"matchLabels": pods_of_pool(pool)}, "policyTypes": ["Ingress"], "ingress": [ingress]}
    return {**policy, "spec": spec}
