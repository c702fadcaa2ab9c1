"""From resources to what is asked of the solver: footprints, groups, replicas, nodes."""

from typing import Any

import pytest
from tests.operator.planning import declared
from tests.operator.planning.declared import ensemble, facts_of

from argosy.api import InferenceModel, Resource, ServingPool
from argosy.api.servingpool import RuntimeName
from argosy.planning.demand.footprint import footprint_of
from argosy.planning.demand.runs import runs_of
from argosy.planning.facts import CurrentServer, Footprint, Gpu, Node, PoolFacts

GIB = 1 << 30
OWN = Footprint(gpus=1, assumed=True)
VLLM = {"modelFormat": {"name": "vllm"}}


def model(name: str, pool: str = "p", namespace: str = "default", **spec: Any) -> InferenceModel:
    spec = {"poolRef": {"name": pool}, "footprint": None, **spec}
    return declared.model(name, metadata={"namespace": namespace}, **spec)


def pool(name: str = "p", namespace: str = "default", **spec: Any) -> ServingPool:
    return declared.pool(name, {"namespace": namespace}, **spec)


def groups(*arguments: dict[str, Any], **footprint: Any) -> dict[str, Any]:
    """Return instance groups of 1 GiB an instance."""
    return {"instanceGroups": list(arguments), "footprint": {"gpuMemory": "1Gi", **footprint}}


def facts(*resources: Resource, nodes: tuple[Node, ...] = ()) -> PoolFacts:
    (result,) = facts_of([pool(), *resources], nodes)
    return result


def grouped(*resources: Resource) -> dict[str, tuple[list[str], int]]:
    return {g.name: ([d.model for d in g.demands], g.replicas) for g in facts(*resources).groups}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, OWN),
        ({"instances": 4}, OWN),
        ({"footprint": {}}, OWN),
        ({"footprint": {"device": "CPU"}}, Footprint()),
        ({"footprint": {"device": "CPU"}, "instances": 4}, Footprint()),
        ({"modelFormat": {"name": "python"}}, Footprint()),
        ({"modelFormat": {"name": "python"}, "footprint": {"device": "GPU"}}, OWN),
        ({"modelFormat": {"name": "python"}, "footprint": {"gpuMemory": "4Gi"}}, Footprint(4 * GIB)),
        ({"footprint": {"gpuMemory": "4Gi"}}, Footprint(4 * GIB)),
        ({"footprint": {"gpuMemory": "4Gi", "compute": "10%"}, "instances": 2}, Footprint(8 * GIB, 200)),
        (groups({"count": 2}, {"kind": "KIND_GPU", "count": 3}), Footprint(5 * GIB)),
        (groups({"kind": "KIND_GPU"}, {"kind": "KIND_CPU", "count": 9}), Footprint(GIB)),
        (groups({"kind": "KIND_GPU", "gpus": [0]}, {"kind": "KIND_GPU", "count": 2}, gpus=2), Footprint(3 * GIB, 0, 2)),
        ({"instanceGroups": [{"kind": "KIND_CPU"}]}, Footprint()),
        ({"modelFormat": {"name": "python"}, "instanceGroups": [{"kind": "KIND_GPU"}]}, OWN),
        ({"footprint": {"gpus": 1}}, Footprint(0, 0, 1)),
        ({"footprint": {"gpus": 1, "gpuMemory": "10Gi"}, "instances": 2}, Footprint(20 * GIB, 0, 1)),
        ({**VLLM, "parallelism": {"tensor": 2}, "footprint": {"gpuMemory": "60Gi"}}, Footprint(60 * GIB, 0, 2)),
        ({**VLLM, "parallelism": {"tensor": 2, "pipeline": 2}}, Footprint(0, 0, 4)),
        ({"parallelism": {"tensor": 1}, "footprint": {"gpuMemory": "1Gi"}}, Footprint(GIB)),
    ],
)
def test_a_footprint_is_what_is_declared(spec: dict[str, Any], expected: Footprint) -> None:
    assert footprint_of(model("m", **spec)) == expected


GPU_NODE, CPU_NODE = Node("a", (Gpu(0, 80 * GIB),)), Node("b", (Gpu(0, 80 * GIB, is_cpu=True),))
WITH_GPU = CurrentServer("p-0", "gone", (0,), {"m": (0,)})


@pytest.mark.parametrize(
    ("spec", "nodes", "current", "expected"),
    [
        ({}, [GPU_NODE, CPU_NODE], [], OWN),
        ({}, [CPU_NODE], [], Footprint()),
        ({}, [], [], Footprint()),
        ({}, [CPU_NODE], [WITH_GPU], OWN),
        ({"maxGpusPerServer": 0}, [GPU_NODE], [], Footprint()),
    ],
)
def test_what_no_one_sized_has_a_gpu_of_its_own_in_a_pool_that_has_gpus(
    spec: dict[str, Any], nodes: list[Node], current: list[CurrentServer], expected: Footprint
) -> None:
    (result,) = facts_of([pool(**spec), model("m")], nodes, {"default/p": current})
    assert [demand.footprint for group in result.groups for demand in group.demands] == [expected]


@pytest.mark.parametrize(("spec", "splittable"), [({}, False), (VLLM, True)])
def test_only_some_backends_run_an_instance_on_several_gpus(spec: dict[str, Any], splittable: bool) -> None:
    (result,) = facts_of([pool(), model("m", **spec)], [GPU_NODE])
    assert [demand.splittable for group in result.groups for demand in group.demands] == [splittable]


def test_a_lone_model_is_its_own_group() -> None:
    assert grouped(model("x", minReplicas=2), model("y")) == {"x": (["x"], 2), "y": (["y"], 1)}


def test_an_ensemble_is_one_group_in_step_order() -> None:
    result = grouped(model("b"), model("a", minReplicas=0), model("c"), ensemble("e", "c", "a", minReplicas=3))
    assert result == {"e": (["c", "a"], 3), "b": (["b"], 1)}


def test_ensembles_that_share_a_model_are_one_group() -> None:
    shared = [model(name) for name in "abcd"]
    result = grouped(*shared, ensemble("two", "b", "c"), ensemble("one", "a", "b"), ensemble("other", "d"))
    assert result == {"one": (["a", "b", "c"], 1), "other": (["d"], 1)}


def test_an_ensemble_within_an_ensemble_brings_its_models() -> None:
    inner, outer = ensemble("inner", "b", "c"), ensemble("outer", "a", "inner", "b")
    assert grouped(model("a"), model("b"), model("c"), inner, outer) == {"inner": (["b", "c", "a"], 1)}
    assert runs_of([inner, outer])["outer"] == ("a", "b", "c")


def test_an_ensemble_that_lacks_a_step_joins_nothing() -> None:
    assert grouped(model("a"), model("b"), ensemble("e", "a", "b", "missing")) == {"a": (["a"], 1), "b": (["b"], 1)}


def test_every_model_keeps_the_replicas_it_requested_itself() -> None:
    (group,) = facts(model("a", minReplicas=3), model("b", minReplicas=0), ensemble("e", "a", "b")).groups
    assert [demand.replicas for demand in group.demands] == [3, 1]
    assert group.replicas == 3


def test_every_pool_gets_its_own() -> None:
    registered = [
        pool("p"),
        pool("q", memoryHeadroom="10%", maxGpusPerServer=2, minServers=1, maxServers=3, suspend=True),
        pool("p", "team"),
        model("x", "p"),
        model("y", "q"),
        model("x", "p", "team"),
        model("z", "nowhere"),
    ]
    here = CurrentServer("q-0", "a", (0,), {"y": (0,)})
    result = {item.pool: item for item in facts_of(registered, (), {"default/q": [here]})}
    assert {key: [g.name for g in item.groups] for key, item in result.items()} == {
        "default/p": ["x"],
        "default/q": ["y"],
        "team/p": ["x"],
    }
    q = result["default/q"]
    assert (q.headroom, q.max_gpus_per_server, q.min_servers, q.max_servers, q.suspended) == (100, 2, 1, 3, True)
    assert q.current == (here,)
    assert result["default/p"].current == ()


TAINT = {"key": "gpu", "value": "h100", "effect": "NoSchedule"}


@pytest.mark.parametrize(
    ("tolerations", "chosen"),
    [
        ([], False),
        ([{"key": "gpu", "operator": "Exists"}], True),
        ([{"operator": "Exists"}], True),
        ([{"key": "gpu", "value": "h100"}], True),
        ([{"key": "gpu", "value": "l4"}], False),
        ([{"key": "gpu", "operator": "Exists", "effect": "NoExecute"}], False),
        ([{"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}], True),
    ],
)
def test_a_tainted_node_is_chosen_by_pools_that_tolerate_it(tolerations: list[Any], chosen: bool) -> None:
    node = Node("a", (Gpu(0, GIB),), taints=(TAINT,))
    (result,) = facts_of([pool(tolerations=tolerations)], [node])
    assert bool(result.nodes) is chosen


def test_a_node_needs_every_selected_label_and_to_be_ready() -> None:
    nodes = [
        Node("d", (), labels={"gpu": "h100", "zone": "1"}),
        Node("b", (), labels={"gpu": "h100", "zone": "1"}, taints=({"key": "x", "effect": "PreferNoSchedule"},)),
        Node("c", (), labels={"gpu": "h100"}),
        Node("a", (), labels={"gpu": "h100", "zone": "1"}, ready=False),
    ]
    (result,) = facts_of([pool(nodeSelector={"gpu": "h100", "zone": "1"})], nodes)
    assert [node.name for node in result.nodes] == ["b", "d"]


@pytest.mark.parametrize(
    ("made_of", "runtime", "tensor", "first"),
    [
        ("vllm", "triton", 2, True),
        ("vllm", "triton", 1, False),
        ("vllm", "argosy", 2, False),
        ("python", "triton", 2, False),
    ],
)
def test_vllm_on_several_gpus_of_nvidias_server_needs_the_first_ones(
    made_of: str, runtime: str, tensor: int, first: bool
) -> None:
    spec = {"modelFormat": {"name": made_of}, "footprint": {"gpus": tensor, "gpuMemory": "8Gi"}}
    split = {"parallelism": {"tensor": tensor}} if made_of == "vllm" else {}
    need = footprint_of(model("m", **spec, **split), runtime=RuntimeName(runtime))
    assert need.first_gpus is first
