"""Resources as tests declare them, by default in the pool `p` of namespace `default`: bodies, and parsed ones."""

from collections.abc import Mapping, Sequence
from typing import Any

from argosy.api import Ensemble, InferenceModel, Resource, ServingPool, parse_body
from argosy.planning.demand.members import Members
from argosy.planning.demand.pool_facts import pool_facts
from argosy.planning.facts import CurrentServer, Demand, Footprint, Gpu, Group, Node, PoolFacts
from argosy.planning.nodes.pool_nodes import PoolNodes

GIB = 1 << 30
TENSOR = {"dataType": "TYPE_FP32", "dims": [1]}
Body = dict[str, Any]


def body(kind: str, name: str, metadata: Body | None = None, **spec: Any) -> Body:
    """Return a resource as an API server sends it. A field of the spec that is None is left out."""
    return {
        "apiVersion": "argosy.dev/v1alpha1",
        "kind": kind,
        "metadata": {"name": name, "generation": 1, **(metadata or {})},
        "spec": {field: value for field, value in spec.items() if value is not None},
    }


def parsed(body: Body) -> Any:
    """Return the resource of a valid body."""
    resource, problems = parse_body(body)
    assert resource is not None, problems
    return resource


def resource(kind: str, name: str, metadata: Body | None = None, **spec: Any) -> Resource:
    """Return a valid resource."""
    return parsed(body(kind, name, metadata, **spec))


def pool(name: str = "p", metadata: Body | None = None, **spec: Any) -> ServingPool:
    """Return the pool."""
    return parsed(body("ServingPool", name, metadata, **spec))


def model_body(name: str, version: int = 1, memory: int = 20, metadata: Body | None = None, **spec: Any) -> Body:
    """Return the body of a model of so many GiB that maps X to Y; 0 GiB is on the CPU.

    With `versions` it has no `version` of its own.
    """
    source = {} if "versions" in spec else {"version": version, "storageUri": f"s3://b/{name}/{version}"}
    defaults = {
        "poolRef": {"name": "p"},
        "modelFormat": {"name": "onnx"},
        "inputs": [{"name": "X", **TENSOR}],
        "outputs": [{"name": "Y", **TENSOR}],
        "footprint": {"gpuMemory": f"{memory}Gi"} if memory else {"device": "CPU"},
    }
    return body("InferenceModel", name, metadata, **{**source, **defaults, **spec})


def model(name: str, version: int = 1, memory: int = 20, metadata: Body | None = None, **spec: Any) -> InferenceModel:
    """Return the model of `model_body`."""
    return parsed(model_body(name, version, memory, metadata, **spec))


def ensemble_body(name: str, *steps: str, metadata: Body | None = None, **spec: Any) -> Body:
    """Return the body of an ensemble that runs models one after the other."""
    chain = ["T0", *(f"T{at + 1}" for at in range(len(steps)))]
    defaults = {
        "poolRef": {"name": "p"},
        "inputs": [{"name": chain[0], **TENSOR}],
        "outputs": [{"name": chain[-1], **TENSOR}],
        "steps": [
            {"model": step, "inputs": {"X": chain[at]}, "outputs": {"Y": chain[at + 1]}}
            for at, step in enumerate(steps)
        ],
    }
    return body("Ensemble", name, metadata, **{**defaults, **spec})


def ensemble(name: str, *steps: str, metadata: Body | None = None, **spec: Any) -> Ensemble:
    """Return the ensemble of `ensemble_body`."""
    return parsed(ensemble_body(name, *steps, metadata=metadata, **spec))


def gpu_node(name: str, gpus: int = 1, memory: int = 80, **state: Any) -> Node:
    """Return a node with GPUs of so many GiB."""
    return Node(name, tuple(Gpu(index, memory * GIB) for index in range(gpus)), **state)


def linked_node(name: str = "a", gpus: int = 4, memory: int = 80) -> Node:
    """Return a node with GPUs of so many GiB, all of them linked by NVLink."""
    return gpu_node(name, gpus, memory, nvlink=(frozenset(range(gpus)),) if gpus > 1 else ())


def lone(name: str, need: Footprint, replicas: int = 1, instances: int = 1) -> Group:
    """Return the group of one model by itself."""
    return Group(name, (Demand(name, 1, need, replicas, instances),), replicas)


def facts_of(
    resources: Sequence[Resource],
    nodes: Sequence[Node],
    current: Mapping[str, Sequence[CurrentServer]] | None = None,
) -> list[PoolFacts]:
    """Return the facts of each pool among the resources; `current` are the running servers, by the pool's key."""
    pools = sorted((member for member in resources if isinstance(member, ServingPool)), key=lambda pool: pool.key)
    runs = current or {}
    return [_facts_of(pool, resources, nodes, runs.get(pool.key, ())) for pool in pools]


def _facts_of(
    pool: ServingPool, resources: Sequence[Resource], nodes: Sequence[Node], servers: Sequence[CurrentServer]
) -> PoolFacts:
    here = PoolNodes.of(pool, nodes, servers, {server.name for server in servers})
    return pool_facts(here, Members.of(pool.key, resources))
