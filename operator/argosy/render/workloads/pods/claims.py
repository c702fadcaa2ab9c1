"""Devices of DRA drivers in a server's or a build's Pod: by a ResourceClaim of its own, made from a
ResourceClaimTemplate.

A template can never be changed. What a device is asked for by follows from its index, so a server with the same devices
has the same template, and one with others has a template of another name.
"""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from argosy.api.servingpool import ServingPool
from argosy.api.values.identity import Identity
from argosy.planning.facts import DraDevice, Node
from argosy.planning.nodes.slices import is_dra
from argosy.render.names import object_name, template_name
from argosy.render.workloads.metadata import owned, server_labels

KIND = "ResourceClaimTemplate"
API_VERSION = "resource.k8s.io/v1"
_CLAIM = "gpus"
"""How a Pod calls its ResourceClaim."""
_EVICTION_DELAY_S = 1800
"""For how long a taint that evicts is tolerated: its models are loaded on other GPUs meanwhile, and drained."""


def has_claim(gpus: Sequence[int]) -> bool:
    """Return whether a server with these devices has them by a ResourceClaim."""
    return any(map(is_dra, gpus))


def pod_claims(name: str, gpus: Sequence[int]) -> list[dict[str, Any]]:
    """Return what a Pod's spec says of the ResourceClaim of its server, or its build, of this name."""
    return [{"name": _CLAIM, "resourceClaimTemplateName": _name(name, gpus)}]


def container_claims() -> list[dict[str, Any]]:
    """Return what the resources of a container say of the ResourceClaim of its Pod."""
    return [{"name": _CLAIM}]


def claim_identity(pool: ServingPool, name: str, gpus: Sequence[int]) -> Identity:
    """Return the identity of the template of a server, or a build, with these devices."""
    return Identity.of(KIND, pool.namespace, _name(name, gpus))


def claim_template(pool: ServingPool, server: str, gpus: Sequence[int], node: Node | None) -> dict[str, Any] | None:
    """Return the template of a server with these devices of a node; None where one of them is not published any more,
    or the server has none.
    """
    return template_of(pool, server, gpus, node, server_labels(pool, server))


def template_of(
    pool: ServingPool, name: str, gpus: Sequence[int], node: Node | None, labels: Mapping[str, str]
) -> dict[str, Any] | None:
    """Return the template of what is called so, which has these labels, as have its ResourceClaims."""
    devices = _devices(node)
    if not has_claim(gpus) or not all(gpu in devices for gpu in gpus):
        return None
    requests = [_request(at, devices[gpu]) for at, gpu in enumerate(gpus)]
    spec = {"metadata": {"labels": dict(labels)}, "spec": {"devices": {"requests": requests}}}
    return {**owned(API_VERSION, KIND, _name(name, gpus), pool, labels), "spec": spec}


def _name(name: str, gpus: Sequence[int]) -> str:
    digest = hashlib.sha256(",".join(map(str, sorted(gpus))).encode()).hexdigest()
    return template_name(object_name(name), digest)


def _devices(node: Node | None) -> Mapping[int, DraDevice]:
    every = (*node.gpus, *node.former) if node is not None else ()
    return {gpu.index: gpu.device for gpu in every if gpu.device is not None}


def _request(at: int, device: DraDevice) -> dict[str, Any]:
    """Return the request of exactly one device, by all that tells it from others."""
    exactly = {
        "deviceClassName": device.device_class,
        "selectors": [{"cel": {"expression": device.selector}}],
        "allocationMode": "ExactCount",
        "count": 1,
        "tolerations": [{"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": _EVICTION_DELAY_S}],
    }
    return {"name": f"gpu-{at}", "exactly": exactly}
