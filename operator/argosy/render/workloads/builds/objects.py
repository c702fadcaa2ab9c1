"""The objects of a build in addition to its Job: its request, the ConfigMap of its report, its rights, its devices."""

from typing import Any

from argosy.api.servingpool import ServingPool
from argosy.planning.builds.build import ScheduledBuild
from argosy.planning.facts import Node
from argosy.render.names import build_name, builds_policy_name, report_name
from argosy.render.workloads.metadata import build_labels, owned, pods_that_build, pool_labels
from argosy.render.workloads.pods.claims import template_of
from argosy.render.workloads.pods.inputs import KubernetesObject
from argosy.render.workloads.rbac import ROLE_GROUP, ROLE_VERSION, configmap_rule
from argosy_agent.contract.builddocuments import REQUEST_KEY, request_text


def build_configmaps(pool: ServingPool, build: ScheduledBuild) -> tuple[KubernetesObject, ...]:
    """Return the ConfigMap with the build's request, and the one that its Pod reports into.

    The latter has no data here, so that applying it does not remove a report.
    """
    name, labels = build_name(pool.name, build.name), build_labels(pool, build.name)
    configmap = owned("v1", "ConfigMap", name, pool, labels)
    return (
        {**configmap, "data": {REQUEST_KEY: request_text(build.request)}},
        owned("v1", "ConfigMap", report_name(name), pool, labels),
    )


def build_account_name(pool: ServingPool, build: ScheduledBuild) -> str:
    """Return the service account of a build's Pods: the pool's setting, or one of its own."""
    return _named_account(pool) or build_name(pool.name, build.name)


def _named_account(pool: ServingPool) -> str | None:
    return pool.spec.builds.service_account_name or pool.spec.storage.service_account_name


def build_rights(pool: ServingPool, build: ScheduledBuild) -> tuple[KubernetesObject, ...]:
    """Return the build's account, unless the pool names one, and the right to write its own report and nothing else."""
    name, labels = build_name(pool.name, build.name), build_labels(pool, build.name)
    role = owned(ROLE_VERSION, "Role", name, pool, labels)
    binding = owned(ROLE_VERSION, "RoleBinding", name, pool, labels)
    account = {"kind": "ServiceAccount", "name": build_account_name(pool, build), "namespace": pool.namespace}
    return (
        *_own_account(pool, name, labels),
        {**role, "rules": [configmap_rule(report_name(name), ["get", "patch", "update"])]},
        {**binding, "roleRef": {"apiGroup": ROLE_GROUP, "kind": "Role", "name": name}, "subjects": [account]},
    )


def _own_account(pool: ServingPool, name: str, labels: dict[str, str]) -> tuple[dict[str, Any], ...]:
    if _named_account(pool):
        return ()
    account = owned("v1", "ServiceAccount", name, pool, labels)
    return ({**account, "automountServiceAccountToken": False},)


def build_claim(pool: ServingPool, build: ScheduledBuild, node: Node | None) -> KubernetesObject | None:
    """Return the ResourceClaimTemplate of a build with devices of DRA drivers, of its node; None where one of them is
    not published any more, or it has none.
    """
    name = build_name(pool.name, build.name)
    return template_of(pool, name, build.gpus, node, build_labels(pool, build.name))


def builds_network_policy(pool: ServingPool) -> dict[str, Any]:
    """Return a NetworkPolicy that lets nothing in to the Pods of a pool's builds.

    What goes out is open: models may be stored anywhere.
    """
    policy = owned("networking.k8s.io/v1", "NetworkPolicy", builds_policy_name(pool.name), pool, pool_labels(pool))
    return {**policy, "spec": {"podSelector": {"matchLabels": pods_that_build(pool)}, "policyTypes": ["Ingress"]}}
