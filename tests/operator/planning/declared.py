"""Resources of one pool `p`, as tests declare them."""

from collections.abc import Mapping, Sequence
from typing import Any

from argosy.api import Resource, ServingPool, parse_body
from argosy.planning.demand.members import Members
from argosy.planning.demand.pool_facts import pool_facts
from argosy.planning.facts import CurrentServer, Gpu, Node, PoolFacts
from argosy.planning.nodes.pool_nodes import PoolNodes

GIB = 1 << 30
TENSOR = {"dataType": "TYPE_FP32", "dims": [1]}


def resource(kind: str, name: str, metadata: dict[str, Any] | None = None, **spec: Any) -> Resource:
    """Return a valid resource in namespace `default`."""
    given = {"name": name, "generation": 1, **(metadata or {})}
    body = {"apiVersion": "argosy.dev/v1alpha1", "kind": kind, "metadata": given, "spec": spec}
    found, problems = parse_body(body)
    assert found is not None, problems
    return found


def pool(name: str = "p", **spec: Any) -> Resource:
    """Return the pool."""
    return resource("ServingPool", name, **spec)


def model(name: str, version: int = 1, memory: int = 20, **spec: Any) -> Resource:
    """Return a model of so many GiB that maps X to Y; 0 GiB is on the CPU."""
    given = {
        "poolRef": {"name": "p"},
        "modelFormat": {"name": "onnx"},
        "storageUri": f"s3://b/{name}/{version}",
        "inputs": [{"name": "X", **TENSOR}],
        "outputs": [{"name": "Y", **TENSOR}],
        "footprint": {"gpuMemory": f"{memory}Gi"} if memory else {"device": "CPU"},
        **spec,
    }
    return resource("InferenceModel", name, version=version, **given)


def ensemble(name: str, *steps: str, **spec: Any) -> Resource:
    """Return an ensemble that runs models one after the other."""
    chain = ["T0", *(f"T{at + 1}" for at in range(len(steps)))]
    given = {
        "poolRef": {"name": "p"},
        "inputs": [{"name": chain[0], **TENSOR}],
        "outputs": [{"name": chain[-1], **TENSOR}],
        "steps": [
            {"model": step, "inputs": {"X": chain[at]}, "outputs": {"Y": chain[at + 1]}}
            for at, step in enumerate(steps)
        ],
        **spec,
    }
    return resource("Ensemble", name, **given)


def gpu_node(name: str, gpus: int = 1, memory: int = 80, **state: Any) -> Node:
    """Return a node with GPUs of so many GiB."""
    return Node(name, tuple(Gpu(index, memory * GIB) for index in range(gpus)), **state)


def facts_of(
    resources: Sequence[Resource],
    nodes: Sequence[Node],
    current: Mapping[str, Sequence[CurrentServer]] | None = None,
) -> list[PoolFacts]:
    """Return the facts of each pool among the resources; `current` are the running servers, by the pool's key."""
    pools = sorted((each for each in resources if isinstance(each, ServingPool)), key=lambda pool: pool.key)
    runs = current or {}
    return [_facts_of(each, resources, nodes, runs.get(each.key, ())) for each in pools]


def _facts_of(
    pool: ServingPool, resources: Sequence[Resource], nodes: Sequence[Node], servers: Sequence[CurrentServer]
) -> PoolFacts:
    here = PoolNodes.of(pool, nodes, servers, {server.name for server in servers})
    return pool_facts(here, Members.of(pool.key, resources))
