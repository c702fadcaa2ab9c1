"""Placeholders: Deployments whose Pods run nothing and are bound to no node, so that node autoscalers add nodes.

A Pod asks for what a server of the pool would ask for. The scheduler finds no node for it, by which Karpenter and the
Cluster Autoscaler learn which node is lacking. It never goes to a node that is planned already (`hosts`), and on one
that came for it a server's Pod preempts it.
"""

from typing import Any

from argosy.api.pool.podtemplate import SERVER
from argosy.api.servingpool import ServingPool
from argosy.planning.provisioning.placeholders import Placeholder
from argosy.planning.spreading import HOSTNAME
from argosy.render.workloads.metadata import owned, placeholder_labels, placeholder_pod_labels, pods_of_placeholder
from argosy.render.workloads.pods.containers import container_security
from argosy.render.workloads.pods.deployment import pod_security
from argosy.render.workloads.pods.inputs import Cluster, Images, KubernetesObject
from argosy.render.workloads.pods.overlay import overlay
from argosy.render.workloads.pods.pool_template import under_pool_template

PRODUCT = "nvidia.com/gpu.product"
"""The label of GPU feature discovery. A node autoscaler has to know it of the nodes that it could add."""
WAITING = "argosy.dev/waiting"
"""An annotation of a placeholder: the models and ensembles that wait for its nodes, the first of them."""
_NAMED = 20
_TAKEN = {SERVER: ("resources",)}
_OWN = frozenset(("priorityClassName", "priority", "preemptionPolicy", "terminationGracePeriodSeconds"))
_EVICTABLE = {"cluster-autoscaler.kubernetes.io/safe-to-evict": "true"}
"""One that was bound keeps no node from being removed."""


def placeholder(pool: ServingPool, desired: Placeholder, images: Images, cluster: Cluster) -> KubernetesObject:
    """Return the Deployment of a placeholder. With other `hosts` its Pods are made again, so none stays bound."""
    spec = {
        "replicas": desired.count,
        "revisionHistoryLimit": 0,
        "strategy": {"type": "Recreate"},
        "selector": {"matchLabels": pods_of_placeholder(desired.name)},
        "template": _template(pool, desired, images, cluster),
    }
    waiting = {WAITING: ", ".join(desired.groups[:_NAMED])}
    return {**owned("apps/v1", "Deployment", desired.name, pool, placeholder_labels(pool), waiting), "spec": spec}


def _template(pool: ServingPool, desired: Placeholder, images: Images, cluster: Cluster) -> dict[str, Any]:
    container = {
        "name": "placeholder",
        "image": images.placeholder,
        "imagePullPolicy": images.pull_policy,
        "securityContext": container_security(),
    }
    spec = {
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": 0,
        "securityContext": pod_security(),
        "priorityClassName": cluster.placeholder_priority_class,
        "containers": [container],
        **({"nodeSelector": dict(desired.labels)} if desired.labels else {}),
    }
    metadata = {"labels": placeholder_pod_labels(pool, desired.name), "annotations": dict(_EVICTABLE)}
    template = under_pool_template(pool, {"metadata": metadata, "spec": spec}, _TAKEN, _OWN)
    template["spec"]["affinity"] = {"nodeAffinity": _affinity(desired)}
    (container,) = template["spec"]["containers"]
    gpus = {"limits": {desired.resource: str(desired.gpus)}}
    container["resources"] = overlay(container.get("resources", {}), gpus)
    return template


def _affinity(desired: Placeholder) -> dict[str, Any]:
    """Return the affinity to nodes that are not there yet, and of those with the right products to the smallest."""
    required = []
    if desired.products:
        required.append({"key": PRODUCT, "operator": "In", "values": list(desired.products)})
    if desired.hosts:
        required.append({"key": HOSTNAME, "operator": "NotIn", "values": list(desired.hosts)})
    for key, full in desired.domains:
        required.append({"key": key, "operator": "Exists"})
        required += [{"key": key, "operator": "NotIn", "values": list(full)}] if full else []
    affinity: dict[str, Any] = {}
    if required:
        terms = {"nodeSelectorTerms": [{"matchExpressions": required}]}
        affinity["requiredDuringSchedulingIgnoredDuringExecution"] = terms
    if len(desired.products) > 1:
        smallest = {"key": PRODUCT, "operator": "In", "values": [desired.products[0]]}
        preferred = {"weight": 100, "preference": {"matchExpressions": [smallest]}}
        affinity["preferredDuringSchedulingIgnoredDuringExecution"] = [preferred]
    return affinity
