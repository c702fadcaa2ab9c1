"""A server's Deployment with its Pod, of one replica so that any server can be retired; a pool's disruption budget."""

import hashlib
import json
from typing import Any

from argosy.api.pool.podtemplate import SERVER
from argosy.api.servingpool import ServingPool, Toleration
from argosy.planning.plan import ServerPlan
from argosy.render.names import object_name
from argosy.render.repositories import RenderedServer
from argosy.render.workloads.metadata import GATE, owned, pods_of_pool, pods_of_server, pool_labels, server_labels
from argosy.render.workloads.pods.claims import has_claim, pod_claims
from argosy.render.workloads.pods.containers import agent_container, container_security, server_container
from argosy.render.workloads.pods.control import token_container
from argosy.render.workloads.pods.ending import TERMINATION_GRACE_S
from argosy.render.workloads.pods.inputs import NO_ACCOUNT, Account, Cluster, Images, KubernetesObject
from argosy.render.workloads.pods.overlay import overlay
from argosy.render.workloads.pods.shared_memory import shared_memory_volumes
from argosy.render.workloads.pods.volumes import volumes
from argosy.render.workloads.rbac import account_name
from argosy_agent.contract import RenderedRepository

TEMPLATE_ANNOTATION = "argosy.dev/template"
"""On a Deployment: which template its Pod is made from, by `template_hash`."""
ACCOUNT_ANNOTATION = "argosy.dev/service-account"
"""The UID of the server's service account: on a Deployment the one that was last seen, on its Pod a new one."""
_PROGRESS_S = 3600
"""How long a new Pod may take until it counts as stuck: images of tens of gigabytes, and models after them."""
_STAYS = {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false", "karpenter.sh/do-not-disrupt": "true"}
"""Annotations by which node autoscalers leave the node of a server alone: its Pod could start on no other node, so its
models are to move first. A node without servers may go.
"""
_USER = 1000
"""The user that runs the server: not root, and the same in the bundled image and NVIDIA's."""


def pod_template(
    pool: ServingPool,
    server_plan: ServerPlan,
    repository: RenderedRepository,
    images: Images,
    account: Account = NO_ACCOUNT,
) -> dict[str, Any]:
    """Return the template of a server's Pod, the pool's own over it.

    Of the repository only the PersistentVolumeClaims matter that its files come from, so models come and go without
    a new Pod.
    """
    metadata = {
        "labels": server_labels(pool, server_plan.name),
        "annotations": {
            "kubectl.kubernetes.io/default-container": SERVER,
            **_STAYS,
            **({ACCOUNT_ANNOTATION: account.remade} if account.remade else {}),
        },
    }
    template = {"metadata": metadata, "spec": _spec(pool, server_plan, repository, images)}
    over = pool.spec.runtime.pod_template
    labels_and_notes = {"labels": over.metadata.labels, "annotations": over.metadata.annotations}
    return overlay(template, {"metadata": labels_and_notes, "spec": over.spec})


def template_hash(template: KubernetesObject) -> str:
    """Return 16 hexadecimal digits, the same for equal templates."""
    text = json.dumps(template, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _spec(pool: ServingPool, plan: ServerPlan, repository: RenderedRepository, images: Images) -> dict[str, Any]:
    spec: dict[str, Any] = {
        "serviceAccountName": account_name(pool, plan.name),
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": TERMINATION_GRACE_S,
        "securityContext": pod_security(),
        "readinessGates": [{"conditionType": GATE}],
        "affinity": on_node(plan.node),
        "initContainers": [token_container(images, container_security())],
        "containers": [server_container(pool, plan, images), agent_container(pool, plan, repository, images)],
        "volumes": [*volumes(pool, repository), *shared_memory_volumes(pool, plan, images)],
    }
    if has_claim(plan.gpus):
        spec["resourceClaims"] = pod_claims(plan.name, plan.gpus)
    if pool.spec.node_selector:
        spec["nodeSelector"] = dict(sorted(pool.spec.node_selector.items()))
    if pool.spec.tolerations:
        spec["tolerations"] = tolerations(pool)
    return spec


def pod_security() -> dict[str, Any]:
    """Return the security context of a whole Pod. Volumes belong to its group, so that every container may use them."""
    return {
        "runAsNonRoot": True,
        "runAsUser": _USER,
        "runAsGroup": _USER,
        "fsGroup": _USER,
        "fsGroupChangePolicy": "OnRootMismatch",
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def on_node(node: str) -> dict[str, Any]:
    """Return the affinity to the node of this name. The scheduler still counts GPUs and memory there, as it would not
    for `nodeName`.
    """
    fields = [{"key": "metadata.name", "operator": "In", "values": [node]}]
    terms = {"nodeSelectorTerms": [{"matchFields": fields}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}


def tolerations(pool: ServingPool) -> list[dict[str, Any]]:
    """Return the tolerations of a pool's Pods."""
    return [_toleration(toleration) for toleration in pool.spec.tolerations]


def _toleration(toleration: Toleration) -> dict[str, Any]:
    rendered = toleration.model_dump(mode="json", by_alias=True, exclude_none=True)
    return {name: value for name, value in rendered.items() if value != ""}


def deployment(
    pool: ServingPool, server: RenderedServer, images: Images, account: Account = NO_ACCOUNT
) -> dict[str, Any]:
    """Return the Deployment of one server.

    A new Pod waits for the old one to end: with no spare GPU it would wait for ever next to it, and a server has one
    state, which two agents cannot write. Models with replicas go on on other servers meanwhile.
    """
    name = server.plan.name
    template = pod_template(pool, server.plan, server.repository, images, account)
    annotations = {TEMPLATE_ANNOTATION: template_hash(template)}
    if account.uid:
        annotations[ACCOUNT_ANNOTATION] = account.uid
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
    """Return the PodDisruptionBudget by which a node's drain takes one server of a pool at a time.

    As a number that may go, not one that must stay: a pool of one server does not hold up the drain. Nor does a server
    that is not ready, where the API server knows the field for that; an older one refuses it. A pool without servers
    keeps the budget, and it holds for the first that comes.
    """
    budget = owned(cluster.pdb_version, "PodDisruptionBudget", pool.name, pool, pool_labels(pool))
    return {**budget, "spec": budget_spec(pods_of_pool(pool), cluster)}


def budget_spec(labels: dict[str, str], cluster: Cluster) -> dict[str, Any]:
    """Return the spec of a PodDisruptionBudget that lets one of the Pods with these labels be evicted at a time. Pods
    that are not ready may always be evicted, if the API server supports that.
    """
    spec: dict[str, Any] = {"maxUnavailable": 1, "selector": {"matchLabels": labels}}
    if cluster.evicts_unready:
        spec["unhealthyPodEvictionPolicy"] = "AlwaysAllow"
    return spec
