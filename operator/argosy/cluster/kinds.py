"""Kinds of objects, and where the API server has them. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from argosy.api import API_VERSION

Key = tuple[str, str]
"""An object's namespace, empty for one that stands in none, and its name."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind in one version of its API; `plural` is what paths and roles call it."""

    api_version: str
    name: str
    plural: str

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """The path of one object, or of all in a namespace, or of all."""
        root = "api" if "/" not in self.api_version else "apis"
        parts = [root, self.api_version, *(("namespaces", namespace) if namespace else ()), self.plural]
        return "/" + "/".join([*parts, *(part for part in (name, subresource) if part)])

    @property
    def group(self) -> str:
        """The API group, empty for the oldest."""
        return self.api_version.rpartition("/")[0]


SERVICE_ACCOUNT = Kind("v1", "ServiceAccount", "serviceaccounts")
CONFIG_MAP = Kind("v1", "ConfigMap", "configmaps")
SERVICE = Kind("v1", "Service", "services")
POD = Kind("v1", "Pod", "pods")
NODE = Kind("v1", "Node", "nodes")
EVENT = Kind("v1", "Event", "events")
DEPLOYMENT = Kind("apps/v1", "Deployment", "deployments")
ROLE = Kind("rbac.authorization.k8s.io/v1", "Role", "roles")
ROLE_BINDING = Kind("rbac.authorization.k8s.io/v1", "RoleBinding", "rolebindings")
NETWORK_POLICY = Kind("networking.k8s.io/v1", "NetworkPolicy", "networkpolicies")
LEASE = Kind("coordination.k8s.io/v1", "Lease", "leases")
CRD = Kind("apiextensions.k8s.io/v1", "CustomResourceDefinition", "customresourcedefinitions")
RESOURCES = {
    name: Kind(API_VERSION, name, plural)
    for name, plural in (
        ("InferenceModel", "inferencemodels"),
        ("Ensemble", "ensembles"),
        ("ServingPool", "servingpools"),
    )
}
"""Argosy's own kinds, by name."""


def disruption_budgets(api_version: str) -> Kind:
    """PodDisruptionBudgets, in the version that the API server has."""
    return Kind(api_version, "PodDisruptionBudget", "poddisruptionbudgets")


_PLURALS = {
    kind.name: kind.plural
    for kind in (
        SERVICE_ACCOUNT,
        CONFIG_MAP,
        SERVICE,
        DEPLOYMENT,
        ROLE,
        ROLE_BINDING,
        NETWORK_POLICY,
        disruption_budgets("policy/v1"),
    )
}


def kind_of(body: Mapping[str, Any]) -> Kind:
    """The kind of an object that a pool may have. KeyError for any other."""
    return Kind(body["apiVersion"], body["kind"], _PLURALS[body["kind"]])


def key_of(body: Mapping[str, Any]) -> Key:
    """An object's namespace and name."""
    metadata = body["metadata"]
    return metadata.get("namespace", ""), metadata["name"]
