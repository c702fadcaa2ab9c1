"""A build's Pod: the builder, what it reads, where it writes, and where it may run.

The pool's Pod template holds for it as for servers (`pods/pool_template.py`).
"""

from collections.abc import Iterator
from typing import Any

from argosy.api.pool.podtemplate import AGENT, SERVER
from argosy.api.servingpool import ServingPool
from argosy.planning.builds.build import ScheduledBuild
from argosy.planning.nodes.slices import GPU_RESOURCE
from argosy.render.names import build_name, report_name, secret_volume_name, volume_name
from argosy.render.workloads.builds.objects import build_account_name
from argosy.render.workloads.metadata import build_pod_labels
from argosy.render.workloads.pods import volumes
from argosy.render.workloads.pods.claims import container_claims, has_claim, pod_claims
from argosy.render.workloads.pods.containers import HOME, NO_GPUS, POD_UID, container_security
from argosy.render.workloads.pods.deployment import on_node, pod_security
from argosy.render.workloads.pods.inputs import Cluster, Images
from argosy.render.workloads.pods.overlay import overlay
from argosy.render.workloads.pods.pool_template import under_pool_template
from argosy_agent.contract.builddocuments import REQUEST_KEY
from argosy_agent.contract.builds import BuildRequest

BUILD_CONTAINER = "build"
ARCHITECTURE_LABEL = "kubernetes.io/arch"
REQUEST, WORKSPACE = "/build", "/workspace"
_REQUEST, _WORKSPACE, _TMP = "request", "workspace", "tmp"
_GRACE_S = 30
"""Seconds that a builder may take to terminate: its finished phases are in the store."""
_TAKEN = {SERVER: ("resources", "securityContext", "imagePullPolicy"), AGENT: ("env", "volumeMounts")}
"""A build computes as a server does, and reaches storage as the agent does: by a proxy, for instance."""
_OWN = frozenset(("priorityClassName", "priority", "preemptionPolicy"))
"""A build gives way to every server."""


def build_pod(pool: ServingPool, build: ScheduledBuild, images: Images, cluster: Cluster) -> dict[str, Any]:
    """Return the template of a build's Pods."""
    spec: dict[str, Any] = {
        "restartPolicy": "Never",
        "serviceAccountName": build_account_name(pool, build),
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": _GRACE_S,
        "securityContext": pod_security(),
        "containers": [_container(pool, build, images)],
        "volumes": _volumes(pool, build),
    }
    if has_claim(build.gpus):
        spec["resourceClaims"] = pod_claims(build_name(pool.name, build.name), build.gpus)
    if build.node:
        spec["affinity"] = on_node(build.node)
    else:
        spec["nodeSelector"] = {ARCHITECTURE_LABEL: build.request.architecture}
    if cluster.build_priority_class:
        spec["priorityClassName"] = cluster.build_priority_class
    template = {"metadata": {"labels": build_pod_labels(pool, build.name)}, "spec": spec}
    templated = under_pool_template(pool, template, _TAKEN, _OWN)
    (container,) = templated["spec"]["containers"]
    if own := _resources(build):
        container["resources"] = overlay(container.get("resources", {}), own)
    return templated


def _container(pool: ServingPool, build: ScheduledBuild, images: Images) -> dict[str, Any]:
    container: dict[str, Any] = {
        "name": BUILD_CONTAINER,
        "image": build.image,
        "imagePullPolicy": images.pull_policy,
        "command": ["python", "-m", "argosy_builder"],
        "args": _arguments(pool, build),
        "env": [HOME, POD_UID, *(() if build.gpus else NO_GPUS)],
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": _mounts(pool, build),
        "securityContext": container_security(),
    }
    secret = pool.spec.build_secret
    return {**container, "envFrom": [{"secretRef": {"name": secret}}]} if secret else container


def _arguments(pool: ServingPool, build: ScheduledBuild) -> list[str]:
    return [
        f"--request={REQUEST}/{REQUEST_KEY}",
        f"--workspace={WORKSPACE}",
        f"--report-configmap={pool.namespace}/{report_name(build_name(pool.name, build.name))}",
        "--pod=$(POD_UID)",
        f"--pvc-root={volumes.CLAIMS}",
        f"--secrets-root={volumes.NAMED_SECRETS}",
        *(f"--allowed-folder={folder}" for folder in pool.spec.storage.allowed_folders),
    ]


def _resources(build: ScheduledBuild) -> dict[str, Any]:
    """Return the resources of the container. Its memory is requested and limited alike: a build that exceeds it ends
    alone.
    """
    memory = {"memory": volumes.amount(build.memory)} if build.memory else {}
    claimed = has_claim(build.gpus)
    gpus = {GPU_RESOURCE: str(len(build.gpus))} if build.gpus and not claimed else {}
    claims = {"claims": container_claims()} if claimed else {}
    return {k: values for k, values in (("requests", memory), ("limits", {**memory, **gpus})) if values} | claims


def _volumes(pool: ServingPool, build: ScheduledBuild) -> list[dict[str, Any]]:
    request = {"name": build_name(pool.name, build.name)}
    return [
        {"name": _REQUEST, "configMap": request},
        {"name": _WORKSPACE, "emptyDir": {}},
        {"name": _TMP, "emptyDir": {}},
        volumes.token_volume(),
        *volumes.storage_secret_volumes(pool.spec.build_secret),
        *(volumes.secret_volume(secret_volume_name(secret), secret) for secret in _secrets(build.request)),
        *(
            volumes.claim_volume(volume_name(claim), claim, read_only=not writable)
            for claim, writable in _claims(build)
        ),
    ]


def _mounts(pool: ServingPool, build: ScheduledBuild) -> list[dict[str, Any]]:
    named = ((secret_volume_name(secret), volumes.secret_path(secret), True) for secret in _secrets(build.request))
    claimed = ((volume_name(claim), volumes.claim_path(claim), not writable) for claim, writable in _claims(build))
    return [
        volumes.mount(_REQUEST, REQUEST, read_only=True),
        volumes.mount(_WORKSPACE, WORKSPACE),
        volumes.mount(_TMP, volumes.TEMPORARY),
        volumes.token_mount(),
        *volumes.storage_secret_mounts(pool.spec.build_secret),
        *(volumes.mount(name, path, read_only=reads) for name, path, reads in (*named, *claimed)),
    ]


def _claims(build: ScheduledBuild) -> Iterator[tuple[str, bool]]:
    """Yield the PersistentVolumeClaims that the build reads, by name, and of each whether engines are kept there."""
    store_claims = volumes.claims_of([build.request.store])
    for claim in volumes.claims_of([build.request.store, *(source.uri for source in _sources(build.request))]):
        yield claim, claim in store_claims


def _secrets(request: BuildRequest) -> tuple[str, ...]:
    return tuple(sorted({source.secret for source in _sources(request)} - {""}))


def _sources(request: BuildRequest) -> Iterator[Any]:
    """Yield all that is fetched for a build."""
    yield request.model
    yield request.calibration
    if request.gate is not None:
        yield request.gate.data
        yield request.gate.script
