"""Services of a pool: one for all its servers, one for each model and ensemble, and their ports."""

import math
from collections.abc import Iterable, Mapping
from typing import Any

from argosy.api.ensemble import Ensemble
from argosy.api.inferencemodel import InferenceModel
from argosy.api.servingpool import ServingPool
from argosy.planning.demand.runs import runs_of
from argosy.render.names import pool_service_name, service_name
from argosy.render.workloads.metadata import member_labels, owned, pods_of_pool, pods_that_serve, pool_labels

HTTP_PORT, GRPC_PORT, METRICS_PORT = 8000, 8001, 8002
PORTS = {"http": HTTP_PORT, "grpc": GRPC_PORT, "metrics": METRICS_PORT}
_REQUESTS = ("http", "grpc")
_AFFINITY_S, _MOST_AFFINITY_S = 10_800, 86_400
"""Kubernetes' default of a ClientIP affinity, and its limit, in seconds."""


def pool_service(pool: ServingPool) -> dict[str, Any]:
    """Return the Service of all ready servers of a pool, whatever they hold; it leads to their metrics, too."""
    service = owned("v1", "Service", pool_service_name(pool.name), pool, pool_labels(pool))
    return {**service, "spec": _spec(pods_of_pool(pool), PORTS)}


def member_service(
    pool: ServingPool, member: InferenceModel | Ensemble, sequence_idle: float | None = None
) -> dict[str, Any]:
    """Return the Service of the ready servers where a model or ensemble is loaded.

    `sequence_idle`: the seconds that a sequence of its requests may pause, for which connections of one client lead to
    one server; None if its requests are unrelated.
    """
    service = owned("v1", "Service", service_name(member.name), member, member_labels(pool, member))
    affinity = {} if sequence_idle is None else _affinity(sequence_idle)
    return {**service, "spec": {**_spec(pods_that_serve(member), _REQUESTS), **affinity}}


def sequence_idles(members: Iterable[InferenceModel | Ensemble]) -> dict[str, float]:
    """Return how long sequences may pause, in seconds, by the names of models that keep them and ensembles of these."""
    every = tuple(members)
    idles = {
        one.name: one.spec.sequence.max_idle_microseconds / 1_000_000
        for one in every
        if isinstance(one, InferenceModel) and one.spec.sequence is not None
    }
    runs = runs_of(one for one in every if isinstance(one, Ensemble))
    through = {name: [idles[model] for model in models if model in idles] for name, models in runs.items()}
    return idles | {name: max(steps) for name, steps in through.items() if steps}


def pool_url(pool: ServingPool) -> str:
    """Return where a pool's servers are asked, inside the cluster."""
    return _url(pool_service_name(pool.name), pool.namespace)


def member_url(member: InferenceModel | Ensemble) -> str:
    """Return where a model or ensemble is asked, inside the cluster: `…/infer` and `…/generate` follow."""
    return f"{_url(service_name(member.name), member.namespace)}/v2/models/{member.served_name}"


def pool_grpc_address(pool: ServingPool) -> str:
    """Return where gRPC clients reach a pool's servers inside the cluster, as host:port."""
    return _grpc(pool_service_name(pool.name), pool.namespace)


def member_grpc_address(member: InferenceModel | Ensemble) -> str:
    """Return where gRPC clients reach a model or ensemble inside the cluster, as host:port."""
    return _grpc(service_name(member.name), member.namespace)


def _grpc(service: str, namespace: str) -> str:
    return f"{service}.{namespace}.svc:{PORTS['grpc']}"


def _url(service: str, namespace: str) -> str:
    return f"http://{service}.{namespace}.svc:{HTTP_PORT}"


def _spec(selector: Mapping[str, str], ports: Iterable[str]) -> dict[str, Any]:
    listed = [{"name": name, "port": PORTS[name], "targetPort": name, "protocol": "TCP"} for name in ports]
    return {"type": "ClusterIP", "selector": dict(selector), "ports": listed}


def _affinity(sequence_idle: float) -> dict[str, Any]:
    # Kubernetes counts from a client's latest new connection, which a connection that is reused does not renew.
    seconds = min(_MOST_AFFINITY_S, max(_AFFINITY_S, math.ceil(sequence_idle)))
    return {"sessionAffinity": "ClientIP", "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": seconds}}}


def network_policy(pool: ServingPool) -> dict[str, Any]:
    """Return the NetworkPolicy of a pool's servers: requests come from anywhere, and nothing else comes in."""
    policy = owned("networking.k8s.io/v1", "NetworkPolicy", pool.name, pool, pool_labels(pool))
    ingress = {"ports": [{"port": port, "protocol": "TCP"} for port in PORTS.values()]}
    spec = {"podSelector": {"matchLabels": pods_of_pool(pool)}, "policyTypes": ["Ingress"], "ingress": [ingress]}
    return {**policy, "spec": spec}
