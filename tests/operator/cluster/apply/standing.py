"""Objects in a namespace, Argosy's and others, and the kinds that an operator reads."""

import json
from typing import Any

from e2e.cluster import Cluster

KINDS_OF_POOLS = (
    "nodes,pods,configmaps,services,serviceaccounts,deployments.apps,roles.rbac.authorization.k8s.io,"
    "rolebindings.rbac.authorization.k8s.io,networkpolicies.networking.k8s.io,poddisruptionbudgets.policy,"
    "controllerrevisions.apps,jobs.batch,inferencemodels.argosy.dev,ensembles.argosy.dev,servingpools.argosy.dev"
)


def versions(cluster: Cluster, namespace: str) -> dict[str, str]:
    kinds = "serviceaccounts,roles,rolebindings,configmaps,services,networkpolicies,poddisruptionbudgets,deployments"
    result = cluster.read(kinds, "-n", namespace)["items"]
    # A Deployment's own controller writes into it for a while.
    return {
        f"{item['kind']} {item['metadata']['name']}": str(
            item["metadata"].get("generation", item["metadata"]["resourceVersion"])
        )
        for item in result
    }


def configmap(namespace: str, name: str, **metadata: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"namespace": namespace, "name": name, **metadata},
        "data": {"kept": "yes"},
    }


def owned_by_another(namespace: str, name: str) -> str:
    """Return a ConfigMap with our labels whose controller is another resource, as JSON."""
    labels = {
        "app.kubernetes.io/managed-by": "argosy",
        "app.kubernetes.io/part-of": "argosy",
        "argosy.dev/pool": "pool",
    }
    owner = {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "name": "theirs",
        "uid": "0d9b7a1e-0000-4000-8000-000000000000",
        "controller": True,
    }
    return json.dumps(configmap(namespace, name, labels=labels, ownerReferences=[owner]))
