"""A pool's Kubernetes objects, as plain mappings.

What may live here: what depends on nothing but resources, the plan and the release's images. Whether an object is
applied, and when, is decided elsewhere; no field is set that the API server or a controller writes.
"""

from argosy.render.workloads.activator import activator_objects
from argosy.render.workloads.builds import (
    TTL_S,
    build_configmaps,
    build_job,
    build_rights,
    builds_network_policy,
    job_hash,
    parse_build_placement,
)
from argosy.render.workloads.configmaps import (
    DRAIN_ANNOTATION,
    HARDWARE_ANNOTATION,
    PLACEMENT_ANNOTATION,
    SERVED_ANNOTATION,
    parse_drain,
    parse_placement,
    parse_served,
    placement_text,
)
from argosy.render.workloads.metadata import (
    ACTIVATOR_LABEL,
    BUILD_LABEL,
    BUILDS_OF_LABEL,
    EJECTED,
    GATE,
    MODEL_LABEL,
    POOL_LABEL,
    SERVER_LABEL,
    SERVES_PREFIX,
    managed_selector,
    member_selector,
    object_identity,
    owners,
    pool_selector,
    route_labels,
)
from argosy.render.workloads.pods.deployment import ACCOUNT_ANNOTATION, TEMPLATE_ANNOTATION, pod_template, template_hash
from argosy.render.workloads.pods.inputs import NO_ACCOUNT, Account, Cluster, Images, KubernetesObject
from argosy.render.workloads.pool_objects import pool_objects
from argosy.render.workloads.revisions import (
    REVISION,
    LatestRevisions,
    controller_revision,
    controller_revision_name,
    recorded_spec,
)
from argosy.render.workloads.services import METRICS_PORT, member_grpc_address, member_url, pool_grpc_address, pool_url

__all__ = [
    "ACCOUNT_ANNOTATION",
    "NO_ACCOUNT",
    "Account",
    "Cluster",
    "Images",
    "KubernetesObject",
    "pool_objects",
    "activator_objects",
    "pod_template",
    "template_hash",
    "TEMPLATE_ANNOTATION",
    "placement_text",
    "parse_placement",
    "PLACEMENT_ANNOTATION",
    "parse_served",
    "SERVED_ANNOTATION",
    "parse_drain",
    "DRAIN_ANNOTATION",
    "HARDWARE_ANNOTATION",
    "build_configmaps",
    "build_job",
    "build_rights",
    "builds_network_policy",
    "job_hash",
    "parse_build_placement",
    "TTL_S",
    "ACTIVATOR_LABEL",
    "BUILD_LABEL",
    "BUILDS_OF_LABEL",
    "METRICS_PORT",
    "object_identity",
    "owners",
    "member_grpc_address",
    "pool_grpc_address",
    "member_url",
    "pool_url",
    "pool_selector",
    "member_selector",
    "managed_selector",
    "route_labels",
    "POOL_LABEL",
    "SERVER_LABEL",
    "MODEL_LABEL",
    "EJECTED",
    "SERVES_PREFIX",
    "GATE",
    "REVISION",
    "controller_revision",
    "controller_revision_name",
    "recorded_spec",
    "LatestRevisions",
]
