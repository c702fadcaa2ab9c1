"""Permissions of a server's agent at the API: read its own ConfigMap, write its own state, nothing else."""

from typing import Any

from argosy.api.servingpool import ServingPool
from argosy.render.names import object_name, state_name
from argosy.render.workloads.metadata import owned, server_labels

ROLE_GROUP = "rbac.authorization.k8s.io"
ROLE_VERSION = f"{ROLE_GROUP}/v1"


def account_name(pool: ServingPool, server: str) -> str:
    """Return the service account of a server's Pod: the pool's setting, or one of its own."""
    return pool.spec.storage.service_account_name or object_name(server)


def service_account(pool: ServingPool, server: str) -> dict[str, Any] | None:
    """Return the server's own account; None where the pool names one, which belongs to others."""
    if pool.spec.storage.service_account_name:
        return None
    account = owned("v1", "ServiceAccount", object_name(server), pool, server_labels(pool, server))
    return {**account, "automountServiceAccountToken": False}


def role(pool: ServingPool, server: str) -> dict[str, Any]:
    """Return the rights of one server's agent, by the names of its two ConfigMaps."""
    rendered = owned(ROLE_VERSION, "Role", object_name(server), pool, server_labels(pool, server))
    rules = [
        configmap_rule(object_name(server), ["get", "list", "watch"]),
        configmap_rule(state_name(server), ["get", "patch", "update"]),
    ]
    return {**rendered, "rules": rules}


def role_binding(pool: ServingPool, server: str) -> dict[str, Any]:
    """Return the RoleBinding of the server's account."""
    name = object_name(server)
    account = {"kind": "ServiceAccount", "name": account_name(pool, server), "namespace": pool.namespace}
    return {
        **owned(ROLE_VERSION, "RoleBinding", name, pool, server_labels(pool, server)),
        "roleRef": {"apiGroup": ROLE_GROUP, "kind": "Role", "name": name},
        "subjects": [account],
    }


def configmap_rule(names: str | list[str], verbs: list[str]) -> dict[str, Any]:
    """Return the right to do this to the one ConfigMap of this name, or to those of several."""
    named = [names] if isinstance(names, str) else names
    return {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": named, "verbs": verbs}
