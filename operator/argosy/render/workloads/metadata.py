"""Metadata of our objects: labels (owner, server, what a Pod may be asked for), names, owners."""

from collections.abc import Iterable, Mapping
from typing import Any

from argosy.api.ensemble import Ensemble
from argosy.api.inferencemodel import InferenceModel
from argosy.api.servingpool import ServingPool
from argosy.api.values.identity import Identity
from argosy.api.values.meta import API_VERSION
from argosy.planning.variants import declared_identity
from argosy.render.names import label
from argosy.render.workloads.pods.inputs import KubernetesObject

Owner = ServingPool | InferenceModel | Ensemble

POOL_LABEL = "argosy.dev/pool"
SERVER_LABEL = "argosy.dev/server"
MODEL_LABEL = "argosy.dev/model"
BUILD_LABEL = "argosy.dev/build"
"""On all that belongs to an engine's build: the name of its request."""
BUILDS_OF_LABEL = "argosy.dev/builds-of"
"""On a build's Pod: its pool. It has no POOL_LABEL, by which Services and budgets find servers."""
ACTIVATOR_LABEL = "argosy.dev/activator"
"""On all that belongs to a pool's activator: the pool. Its Pod has no POOL_LABEL, by which Services find servers."""
PLACEHOLDER_LABEL = "argosy.dev/placeholder"
"""On a placeholder's Deployment and its Pods: the pool. Its Pods have no POOL_LABEL, by which budgets find servers."""
SERVES_PREFIX = "serves.argosy.dev/"
"""Before a model's or ensemble's label: the key that a Pod has while requests for it may go there."""
EJECTED = "ejected"
"""The value of that key while a Pod could be asked and no Service leads there, for the length of its queue."""
GATE = "argosy.dev/settled"
"""The readiness gate of a Pod: its first models are loaded or have failed."""
_MANAGED = {"app.kubernetes.io/managed-by": "argosy", "app.kubernetes.io/part-of": "argosy"}
_YES = "true"


def pool_labels(pool: ServingPool) -> dict[str, str]:
    """Return the labels of everything that belongs to a pool."""
    return {**_MANAGED, POOL_LABEL: label(pool.name)}


def server_labels(pool: ServingPool, server: str) -> dict[str, str]:
    """Return the labels of what belongs to one server, its Pod among it."""
    return {**pool_labels(pool), SERVER_LABEL: label(server)}


def member_labels(pool: ServingPool, member: InferenceModel | Ensemble) -> dict[str, str]:
    """Return the labels of what belongs to a model or ensemble."""
    return {**pool_labels(pool), MODEL_LABEL: label(member.name)}


def build_labels(pool: ServingPool, request: str) -> dict[str, str]:
    """Return the labels of what belongs to an engine's build, by its request's name; of its Pods see
    `build_pod_labels`.
    """
    return {**pool_labels(pool), BUILD_LABEL: request}


def build_pod_labels(pool: ServingPool, request: str) -> dict[str, str]:
    """Return the labels of a build's Pods."""
    return {**_MANAGED, **pods_that_build(pool), BUILD_LABEL: request}


def pods_that_build(pool: ServingPool) -> dict[str, str]:
    """Return what selects the Pods of all builds of a pool."""
    return {BUILDS_OF_LABEL: label(pool.name)}


def activator_labels(pool: ServingPool) -> dict[str, str]:
    """Return the labels of what belongs to a pool's activator; of its Pods see `activator_pod_labels`."""
    return {**pool_labels(pool), **pods_that_activate(pool)}


def activator_pod_labels(pool: ServingPool) -> dict[str, str]:
    """Return the labels of an activator's Pods."""
    return {**_MANAGED, **pods_that_activate(pool)}


def pods_that_activate(pool: ServingPool) -> dict[str, str]:
    """Return what selects the Pods of a pool's activator."""
    return {ACTIVATOR_LABEL: label(pool.name)}


def placeholder_labels(pool: ServingPool) -> dict[str, str]:
    """Return the labels of a pool's placeholders; of their Pods see `placeholder_pod_labels`."""
    return {**pool_labels(pool), PLACEHOLDER_LABEL: label(pool.name)}


def placeholder_pod_labels(pool: ServingPool, placeholder: str) -> dict[str, str]:
    """Return the labels of the Pods of a placeholder, by its name."""
    return {**_MANAGED, PLACEHOLDER_LABEL: label(pool.name), **pods_of_placeholder(placeholder)}


def pods_of_placeholder(placeholder: str) -> dict[str, str]:
    """Return what selects a placeholder's Pods."""
    return {"argosy.dev/placeholder-name": placeholder}


def revision_labels(pool: ServingPool, resource: Owner) -> dict[str, str]:
    """Return the labels of a ControllerRevision of the pool, or of a model or ensemble that the pool serves."""
    return pool_labels(pool) if isinstance(resource, ServingPool) else member_labels(pool, resource)


def pods_of_pool(pool: ServingPool) -> dict[str, str]:
    """Return what selects the Pods of all servers of a pool."""
    return {POOL_LABEL: label(pool.name)}


def pods_of_server(pool: ServingPool, server: str) -> dict[str, str]:
    """Return what selects a server's Pod. A Deployment's selector can never be changed, so it says no more."""
    return {**pods_of_pool(pool), SERVER_LABEL: label(server)}


def pods_that_serve(member: InferenceModel | Ensemble) -> dict[str, str]:
    """Return what selects the Pods that may be asked for a model or ensemble; while it moves from pool to pool, in
    both.
    """
    return route_labels([member.name])


def route_labels(members: Iterable[str]) -> dict[str, str]:
    """Return the labels by which Services route requests for these models and ensembles to a Pod.

    They are in no template: a Pod gets a label once the model is loaded there, and loses it before the model is
    unloaded.
    """
    return {f"{SERVES_PREFIX}{label(name)}": _YES for name in sorted(members)}


def managed_selector() -> str:
    """Return the selector, as a query has it, of all that this operator makes."""
    return _query(_MANAGED)


def pool_selector(pool: ServingPool) -> str:
    """Return `status.selector` of a pool: its servers' Pods."""
    return _query(pods_of_pool(pool))


def member_selector(member: InferenceModel | Ensemble) -> str:
    """Return `status.selector` of a model or ensemble: the Pods that serve it."""
    return _query(pods_that_serve(member))


def _query(labels: dict[str, str]) -> str:
    return ",".join(f"{key}={value}" for key, value in labels.items())


def owned(
    api_version: str,
    kind: str,
    name: str,
    owner: Owner,
    labels: Mapping[str, str],
    annotations: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Return an object without content, in its owner's namespace, that goes when the owner goes."""
    metadata: dict[str, Any] = {"name": name, "namespace": owner.namespace, "labels": dict(labels)}
    if annotations:
        metadata["annotations"] = dict(annotations)
    metadata["ownerReferences"] = [_reference(owner)]
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata}


def _reference(owner: Owner) -> dict[str, Any]:
    """Return the owner reference, by which the garbage collector deletes. Nothing blocks the owner's deletion.

    What planning made of a resource, such as a variant, is owned by the resource.
    """
    kind, _, key = declared_identity(owner).partition(" ")
    return {
        "apiVersion": API_VERSION,
        "kind": kind,
        "name": key.partition("/")[2],
        "uid": owner.metadata.uid,
        "controller": True,
    }


def object_identity(body: KubernetesObject) -> Identity:
    """Return `Kind namespace/name` of an object whose metadata has both."""
    metadata = body["metadata"]
    return Identity.of(body["kind"], metadata["namespace"], metadata["name"])


def owners(objects: Iterable[KubernetesObject]) -> dict[str, str]:
    """Return the identity of each object's owner, whose status reports an object that cannot be applied."""
    return {object_identity(object_): _owner(object_) for object_ in objects}


def _owner(body: KubernetesObject) -> str:
    metadata = body["metadata"]
    (reference,) = (owner for owner in metadata["ownerReferences"] if owner.get("controller"))
    return Identity.of(reference["kind"], metadata["namespace"], reference["name"])
