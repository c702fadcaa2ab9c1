"""A server's Pod: one server, its agent, and the node that the plan chose."""

import hashlib
import json
from typing import Any

from argosy.api.podtemplate import SERVER
from argosy.api.servingpool import ServingPool, Toleration
from argosy.fleet.plan import ServerPlan
from argosy_runtime.agent.contract import RenderedRepository

from .agent_container import agent_container
from .ending import TERMINATION_GRACE_S
from .inputs import Images, KubernetesObject
from .metadata import GATE, server_labels
from .overlay import overlay
from .rbac import account_name
from .security import pod_security
from .server_container import server_container
from .volumes import volumes

TEMPLATE_ANNOTATION = "argosy.dev/template"
"""On a Deployment: which template its Pod is made from, by `template_hash`."""


def pod_template(
    pool: ServingPool, server_plan: ServerPlan, repository: RenderedRepository, images: Images
) -> dict[str, Any]:
    """The template of a server's Pod, the pool's own over it.

    Of the repository only the PersistentVolumeClaims matter that its files come from, so models come and go without
    a new Pod.
    """
    metadata = {
        "labels": server_labels(pool, server_plan.name),
        "annotations": {"kubectl.kubernetes.io/default-container": SERVER},
    }
    template = {"metadata": metadata, "spec": _spec(pool, server_plan, repository, images)}
    over = pool.spec.runtime.pod_template
    labels_and_notes = {"labels": over.metadata.labels, "annotations": over.metadata.annotations}
    return overlay(template, {"metadata": labels_and_notes, "spec": over.spec})


def template_hash(template: KubernetesObject) -> str:
    """16 hexadecimal digits, the same for equal templates."""
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
        "affinity": _on_node(plan.node),
        "containers": [server_container(pool, plan, images), agent_container(pool, plan, repository, images)],
        "volumes": volumes(pool, repository),
    }
    if pool.spec.node_selector:
        spec["nodeSelector"] = dict(sorted(pool.spec.node_selector.items()))
    if pool.spec.tolerations:
        spec["tolerations"] = [_toleration(each) for each in pool.spec.tolerations]
    return spec


def _on_node(node: str) -> dict[str, Any]:
    """The node by its name. The scheduler still counts GPUs and memory there, as it would not for `nodeName`."""
    fields = [{"key": "metadata.name", "operator": "In", "values": [node]}]
    terms = {"nodeSelectorTerms": [{"matchFields": fields}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}


def _toleration(toleration: Toleration) -> dict[str, Any]:
    rendered = toleration.model_dump(mode="json", by_alias=True, exclude_none=True)
    return {name: value for name, value in rendered.items() if value != ""}
