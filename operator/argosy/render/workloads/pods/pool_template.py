"""What of a pool's Pod template holds for its Pods that are no server's: its activator's and its builds'.

A cluster's policies and quotas ask the same of every Pod of a namespace: so these take all that the servers take, but
for what is about servers. Sidecars are: in a build one would never end.
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
    mounted = {each.get("name") for each in fields.get("volumeMounts", ())}
    if volumes := [each for each in over.spec.get("volumes", ()) if each["name"] in mounted]:
        patch["volumes"] = volumes
    metadata = {
        field: value
        for field, value in (("labels", over.metadata.labels), ("annotations", over.metadata.annotations))
        if value
    }
    return overlay({**template, "spec": spec}, {"metadata": metadata, "spec": patch})


def _container_fields(spec: Mapping[str, Any], taken: Taken, container: Mapping[str, Any]) -> dict[str, Any]:
    """What the one container takes of those of the servers. What it mounts itself stays where it is."""
    found: dict[str, Any] = {}
    for each in spec.get("containers", ()):
        fields = {field: each[field] for field in taken.get(each["name"], ()) if field in each}
        found = overlay(found, fields)
    if "volumeMounts" in found:
        own = [each["mountPath"] for each in container.get("volumeMounts", ())]
        found["volumeMounts"] = [each for each in found["volumeMounts"] if not _hides(each["mountPath"], own)]
    return found


def _hides(path: str, own: list[str]) -> bool:
    place = normpath(path).rstrip("/") + "/"
    return any(f"{normpath(each)}/".startswith(place) for each in own)
