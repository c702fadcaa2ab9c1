"""The kinds of objects that Argosy reads and writes, in the form that the dynamic client takes. Pure.

They are a table instead of the client's discovery, which sends ten requests at every start, and caches the responses in
a file that outlives an upgrade of the cluster.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from argosy.api import API_VERSION

Key = tuple[str, str]
"""An object's namespace, empty for cluster-scoped ones, and its name."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind in one version of its API; `plural` is its name in paths and roles. The dynamic client reads these."""

    api_version: str
    name: str
    plural: str
    namespaced: bool = True
    subresource: str = ""

    def path(self, name: str | None = None, namespace: str | None = None) -> str:
        """Return the path of one object, of all in a namespace, or of all. The dynamic client calls this."""
        root = "api" if "/" not in self.api_version else "apis"
        parts = [root, self.api_version, *(("namespaces", namespace) if namespace else ()), self.plural]
        return "/" + "/".join([*parts, *(part for part in (name, self.subresource) if part)])

    @property
    def resource(self) -> str:
        """The name in request metrics: `pods`, `pods/status`."""
        return f"{self.plural}/{self.subresource}" if self.subresource else self.plural

    @property
    def status(self) -> "Kind":
        """The status subresource."""
        return replace(self, subresource="status")


SERVICE_ACCOUNT = Kind("v1", "ServiceAccount", "serviceaccounts")
SECRET = Kind("v1", "Secret", "secrets")
CONFIG_MAP = Kind("v1", "ConfigMap", "configmaps")
SERVICE = Kind("v1", "Service", "services")
POD = Kind("v1", "Pod", "pods")
NODE = Kind("v1", "Node", "nodes", namespaced=False)
EVENT = Kind("v1", "Event", "events")
DEPLOYMENT = Kind("apps/v1", "Deployment", "deployments")
JOB = Kind("batch/v1", "Job", "jobs")
CONTROLLER_REVISION = Kind("apps/v1", "ControllerRevision", "controllerrevisions")
ROLE = Kind("rbac.authorization.k8s.io/v1", "Role", "roles")
ROLE_BINDING = Kind("rbac.authorization.k8s.io/v1", "RoleBinding", "rolebindings")
NETWORK_POLICY = Kind("networking.k8s.io/v1", "NetworkPolicy", "networkpolicies")
INFERENCE_POOL = Kind("inference.networking.k8s.io/v1", "InferencePool", "inferencepools")
RESOURCE_CLAIM_TEMPLATE = Kind("resource.k8s.io/v1", "ResourceClaimTemplate", "resourceclaimtemplates")
RESOURCE_CLAIM = Kind("resource.k8s.io/v1", "ResourceClaim", "resourceclaims")
RESOURCE_SLICE = Kind("resource.k8s.io/v1", "ResourceSlice", "resourceslices", namespaced=False)
DEVICE_TAINT_RULE = Kind("resource.k8s.io/v1", "DeviceTaintRule", "devicetaintrules", namespaced=False)
LEASE = Kind("coordination.k8s.io/v1", "Lease", "leases")
CRD = Kind("apiextensions.k8s.io/v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False)
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
    """Return the kind of PodDisruptionBudgets in the version that the API server supports."""
    return Kind(api_version, "PodDisruptionBudget", "poddisruptionbudgets")


def owned(pdb_version: str, inference_pools: bool = True, device_claims: bool = True) -> tuple[Kind, ...]:
    """Return the kinds of objects that pools have; `inference_pools`, `device_claims`: whether the API server has
    InferencePools and ResourceClaimTemplates.
    """
    return (
        SERVICE_ACCOUNT,
        ROLE,
        ROLE_BINDING,
        CONFIG_MAP,
        CONTROLLER_REVISION,
        SERVICE,
        NETWORK_POLICY,
        disruption_budgets(pdb_version),
        DEPLOYMENT,
        JOB,
        *((INFERENCE_POOL,) if inference_pools else ()),
        *((RESOURCE_CLAIM_TEMPLATE,) if device_claims else ()),
    )


_PLURALS = {kind.name: kind.plural for kind in owned("policy/v1")}


def kind_of(body: Mapping[str, Any]) -> Kind:
    """Return the kind of an object that a pool may have. KeyError for any other."""
    return Kind(body["apiVersion"], body["kind"], _PLURALS[body["kind"]])


def key_of(body: Mapping[str, Any]) -> Key:
    """Return an object's namespace and name."""
    metadata = body["metadata"]
    return metadata.get("namespace", ""), metadata["name"]
