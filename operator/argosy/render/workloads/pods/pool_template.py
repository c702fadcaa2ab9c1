"""The part of a pool's Pod template that applies to its Pods without a server: its activator and its builds.

A cluster's policies and quotas apply to every Pod of a namespace, so these Pods get all settings of the servers' Pods
except those that concern servers. Sidecars are left out, since one would keep a build from ending.
"""

from collections.abc import Mapping
from posixpath import normpath
from typing import Any

from argosy.api.servingpool import ServingPool
from argosy.render.workloads.pods.deployment import tolerations
from argosy.render.workloads.pods.overlay import overlay

_OF_SERVERS = frozenset(
    (
        *("containers", "initContainers", "volumes", "resourceClaims"),
        *("affinity", "topologySpreadConstraints", "hostname", "subdomain", "setHostnameAsFQDN"),
        *("hostIPC", "hostPID", "shareProcessNamespace"),
    )
)
"""Fields of a Pod's spec that are about servers and their sidecars alone."""
OF_CONTAINERS = ("env", "resources", "securityContext", "volumeMounts", "imagePullPolicy")
"""Fields of a container that are taken over."""

Taken = Mapping[str, tuple[str, ...]]
"""By a container of the pool's servers, which of its fields are taken over from it."""


def under_pool_template(
    pool: ServingPool, template: Mapping[str, Any], taken: Taken, own: frozenset[str] = frozenset()
) -> dict[str, Any]:
    """Return a template of a Pod of one container, under the pool's; `own` are fields of its spec that stay as they
    are.

    The pool's nodeSelector and tolerations hold for it.
    """
    over, spec = pool.spec.runtime.pod_template, dict(template["spec"])
    if pool.spec.node_selector:
        spec["nodeSelector"] = dict(sorted({**spec.get("nodeSelector", {}), **pool.spec.node_selector}.items()))
    if pool.spec.tolerations:
        spec["tolerations"] = tolerations(pool)
    patch = {field: value for field, value in over.spec.items() if field not in _OF_SERVERS | own}
    (container,) = spec["containers"]
    fields = _container_fields(over.spec, taken, container)
    if fields:
        patch["containers"] = [{"name": container["name"], **fields}]
    mounted = {mount.get("name") for mount in fields.get("volumeMounts", ())}
    if volumes := [volume for volume in over.spec.get("volumes", ()) if volume["name"] in mounted]:
        patch["volumes"] = volumes
    metadata = {
        field: value
        for field, value in (("labels", over.metadata.labels), ("annotations", over.metadata.annotations))
        if value
    }
    return overlay({**template, "spec": spec}, {"metadata": metadata, "spec": patch})


def _container_fields(spec: Mapping[str, Any], taken: Taken, container: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of the servers' containers that this one takes. Its own volume mounts win."""
    fields: dict[str, Any] = {}
    for template in spec.get("containers", ()):
        allowed = taken.get(template["name"], ())
        fields = overlay(fields, {field: template[field] for field in allowed if field in template})
    if "volumeMounts" in fields:
        own = [mount["mountPath"] for mount in container.get("volumeMounts", ())]
        fields["volumeMounts"] = [mount for mount in fields["volumeMounts"] if not _hides(mount["mountPath"], own)]
    return fields


def _hides(path: str, own: list[str]) -> bool:
    folder = normpath(path).rstrip("/") + "/"
    return any(f"{normpath(mounted)}/".startswith(folder) for mounted in own)
