"""Nodes that models require: kinds of GPU, labels, precisions; what is said where none will do, and what moves."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.operator.planning.declared import ensemble, facts_of, gpu_node, lone, model, pool
from tests.operator.planning.test_packing_properties import groups
from tests.properties import examples

from argosy.api.values.capability import CapabilityRange, at_least
from argosy.api.values.identity import PoolKey
from argosy.planning.facts import Footprint, Gpu, Group, Node, PoolFacts
from argosy.planning.packing.solve import pack
from argosy.planning.plan import PoolPlan
from argosy.planning.required_nodes import requirements_of
from argosy.planning.requirements import NOTHING, NodeRequirements
from argosy.planning.validation.references import check_set

GIB = 1 << 30
A100 = {"product": "NVIDIA-A100-SXM4-80GB", "compute_capability": "8.0"}
H100 = {"product": "NVIDIA-H100-80GB-HBM3", "compute_capability": "9.0"}
L4 = {"product": "NVIDIA-L4", "compute_capability": "8.9"}
VLLM = {"modelFormat": {"name": "vllm"}}
MEASURED = {"accuracy": {"skip": "measured elsewhere"}, "calibration": {"dataUri": "s3://b/prompts"}}


def argument(name: str, value: str) -> dict[str, Any]:
    return {**VLLM, "config": {"parameters": {name: {"string_value": value}}}}


def engine(builder: str, precision: str, **options: Any) -> dict[str, Any]:
    made = {
        "builder": builder,
        "options": options,
        **({"precision": precision, **MEASURED} if precision in ("fp8", "fp4") else {"precision": precision}),
    }
    return {"modelFormat": {"name": "huggingface" if builder == "tensorrt_llm" else "onnx"}, "engine": made}


def gpu_type(**fields: Any) -> dict[str, Any]:
    return {"footprint": {"gpuMemory": "10Gi", "gpuType": fields}}


def placed(plan: PoolPlan) -> dict[str, list[str]]:
    """Return the nodes of each model."""
    nodes: dict[str, list[str]] = {}
    for server in plan.servers:
        for placement in server.placements:
            nodes.setdefault(placement.model, []).append(server.node)
    return nodes


@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [
        (">= 8.9", ["8.9", "9.0", "12.0"], ["8.0", "8.8", "", "unknown"]),
        ("9.0", ["9.0"], ["8.9", "9.1"]),
        ("== 9.0", ["9.0"], ["10.0"]),
        (">=8.0,<9.0", ["8.0", "8.9"], ["7.5", "9.0", "12.0"]),
        ("> 8.0, <= 10.0", ["8.6", "10.0"], ["8.0", "10.3"]),
    ],
)
def test_a_range_has_the_capabilities_that_every_term_accepts(text: str, inside: list[str], outside: list[str]) -> None:
    accepted = CapabilityRange.parse(text)
    assert [text for text in (*inside, *outside) if accepted.accepts(text)] == inside


@pytest.mark.parametrize(
    ("spec", "first", "because"),
    [
        (engine("tensorrt_llm", "fp8"), 8.9, "engine.precision fp8"),
        (engine("tensorrt_llm", "fp4"), 10.0, "engine.precision fp4"),
        (engine("tensorrt_llm", "bf16"), 8.0, "engine.precision bf16"),
        (engine("tensorrt_llm", "fp8", kv_cache_dtype="fp8"), 8.9, "engine.precision fp8"),
        (argument("quantization", "fp8"), 8.9, "config.parameters.quantization fp8"),
        (argument("quantization", "modelopt_fp4"), 10.0, "config.parameters.quantization modelopt_fp4"),
        (argument("kv_cache_dtype", "fp8_e4m3"), 8.9, "config.parameters.kv_cache_dtype fp8_e4m3"),
        (argument("dtype", "bfloat16"), 8.0, "config.parameters.dtype bfloat16"),
    ],
)
def test_precisions_decide_which_gpus_will_do(spec: dict[str, Any], first: float, because: str) -> None:
    required = requirements_of(model("m", **spec))
    assert (required.capability, required.because) == (at_least(first), because)


@pytest.mark.parametrize(
    "spec",
    [
        {},
        argument("quantization", "awq"),
        argument("dtype", "float16"),
        engine("tensorrt_llm", "fp16"),
        {"footprint": {"device": "CPU"}, **engine("onnxruntime", "fp16")},
    ],
)
def test_other_precisions_run_on_any_gpu(spec: dict[str, Any]) -> None:
    assert requirements_of(model("m", **spec)) is NOTHING


def test_a_declared_capability_overrides_that_of_the_precision() -> None:
    spec = {**argument("quantization", "fp8"), **gpu_type(computeCapability=">= 8.0")}
    assert requirements_of(model("m", **spec)).capability == at_least(8.0)
    named = {**argument("quantization", "fp8"), **gpu_type(products=["NVIDIA-L4"])}
    assert requirements_of(model("m", **named)).capability == at_least(8.9)


FLEET = (
    gpu_node("a", 2, **A100, labels={"disk": "ssd"}),
    gpu_node("h", 2, **H100, labels={"disk": "hdd"}),
    gpu_node("l", 2, 24, **L4),
)


@pytest.mark.parametrize("limits", [{}, {"maxServers": 8}])
@pytest.mark.parametrize(
    ("spec", "node"),
    [
        (gpu_type(products=["NVIDIA-H100-80GB-HBM3"]), "h"),
        (gpu_type(products=["NVIDIA-L4", "NVIDIA-H200"]), "l"),
        (gpu_type(computeCapability=">= 9.0"), "h"),
        (gpu_type(computeCapability="< 8.9"), "a"),
        ({**argument("quantization", "fp8"), "nodeSelector": {"disk": "hdd"}}, "h"),
        ({"nodeSelector": {"disk": "ssd"}}, "a"),
    ],
)
def test_a_model_is_placed_where_it_may_run(spec: dict[str, Any], node: str, limits: dict[str, Any]) -> None:
    (facts,) = facts_of([pool(**limits), model("m", **spec), model("other")], FLEET)
    assert placed(pack(facts))["m"] == [node]


@pytest.mark.parametrize("limits", [{}, {"maxServers": 8}])
def test_a_model_is_pinned_to_a_node_by_its_hostname(limits: dict[str, Any]) -> None:
    nodes = [gpu_node(name, labels={"kubernetes.io/hostname": name}) for name in "abc"]
    pinned = model("m", nodeSelector={"kubernetes.io/hostname": "b"})
    (facts,) = facts_of([pool(**limits), pinned, model("n")], nodes)
    assert placed(pack(facts))["m"] == ["b"]
    (unplaced,) = pack(replace(facts, nodes=facts.nodes[::2])).unplaced
    assert (unplaced.group, unplaced.reason) == ("m", "NoMatchingNode")
    assert "kubernetes.io/hostname=b" in unplaced.message


def test_an_ensemble_goes_where_all_of_its_models_may_run() -> None:
    nodes = [
        gpu_node(f"n{at}", 2, labels=dict(zip("xyz", labels, strict=True)))
        for at, labels in enumerate(("110", "101", "111"))
    ]
    parts = [model("one", nodeSelector={"x": "1"}), model("two", nodeSelector={"y": "1"})]
    (facts,) = facts_of([pool(), *parts, ensemble("e", "one", "two", nodeSelector={"z": "1"})], nodes)
    assert placed(pack(facts)) == {"one": ["n2"], "two": ["n2"]}


UNKNOWN = gpu_node("u", 2, product="NVIDIA-L40S")
SAYS: dict[str, tuple[Sequence[Node], dict[str, Any], str, list[str]]] = {
    "no such label": (
        FLEET,
        {"nodeSelector": {"disk": "nvme"}},
        "NoMatchingNode",
        ["nodeSelector of m requires disk=nvme", "disk=hdd (h); disk=ssd (a); no label disk (l)", "Label a node"],
    ),
    "no node with both labels": (
        (gpu_node("a", labels={"x": "1"}), gpu_node("b", labels={"y": "1"})),
        {"nodeSelector": {"x": "1", "y": "1"}},
        "NoMatchingNode",
        ["no node of the pool has all labels of nodeSelector: x=1, y=1"],
    ),
    "no such GPU": (
        FLEET,
        gpu_type(computeCapability=">= 10.0"),
        "NoGpuOfType",
        [
            "m needs a GPU of compute capability >= 10.0 (footprint.gpuType.computeCapability)",
            "NVIDIA-A100-SXM4-80GB, 8.0 (a)",
            "change footprint.gpuType",
        ],
    ),
    "no GPU for the precision": (
        FLEET[:1],
        argument("quantization", "fp8"),
        "NoGpuOfType",
        ["compute capability >= 8.9 (config.parameters.quantization fp8)"],
    ),
    "an unknown capability": (
        (UNKNOWN,),
        gpu_type(computeCapability=">= 8.9"),
        "NoGpuOfType",
        ["NVIDIA-L40S, an unknown compute capability (u)", "install NVIDIA's GPU feature discovery"],
    ),
    "a GPU of another product": (
        FLEET,
        gpu_type(products=["NVIDIA-H200"]),
        "NoGpuOfType",
        ["m needs a GPU of product NVIDIA-H200"],
    ),
    "a matching node that is too small": (
        FLEET,
        {"footprint": {"gpuMemory": "40Gi", "gpuType": {"products": ["NVIDIA-L4"]}}},
        "GpuTooSmall",
        ["the largest usable is 19.2 GiB on node l", "Of 3 nodes the pool has 1 that it may have"],
    ),
}


@pytest.mark.parametrize("case", SAYS)
def test_where_none_will_do_it_says_what_the_nodes_have(case: str) -> None:
    nodes, spec, reason, words = SAYS[case]
    (facts,) = facts_of([pool(), model("m", **spec)], nodes)
    (unplaced,) = pack(facts).unplaced
    assert unplaced.reason == reason, unplaced
    assert [part for part in words if part not in unplaced.message] == [], unplaced.message


def test_contradicting_models_of_a_server_are_in_the_message() -> None:
    """Through a shared model two ensembles share a server, which no check of either of them sees."""
    parts = [model("a", nodeSelector={"disk": "ssd"}), model("b"), model("c", nodeSelector={"disk": "hdd"})]
    (facts,) = facts_of([pool(), *parts, ensemble("e", "a", "b"), ensemble("f", "b", "c")], FLEET)
    (unplaced,) = pack(facts).unplaced
    assert unplaced.reason == "NoMatchingNode"
    assert "a and c share a server, and no node has what both require: disk=ssd and disk=hdd" in unplaced.message


@pytest.mark.parametrize(
    ("resources", "path", "message"),
    [
        (
            [pool(nodeSelector={"disk": "ssd"}), model("m", nodeSelector={"disk": "hdd"})],
            "spec.nodeSelector.disk",
            "is 'hdd', and pool 'p' has nodes with disk=ssd only",
        ),
        (
            [
                pool(),
                model("a", nodeSelector={"disk": "ssd"}),
                model("b", nodeSelector={"disk": "hdd"}),
                ensemble("e", "a", "b"),
            ],
            "spec.steps",
            "model 'a' and model 'b' share a server, and no node has what both require: disk=ssd and disk=hdd",
        ),
        (
            [pool(), model("a", nodeSelector={"x": "1"}), ensemble("e", "a", nodeSelector={"x": "2"})],
            "spec.steps",
            "the ensemble and model 'a' share a server",
        ),
        (
            [
                pool(),
                model("a", **gpu_type(products=["NVIDIA-L4"])),
                model("b", **gpu_type(products=["NVIDIA-H200"])),
                ensemble("e", "a", "b"),
            ],
            "spec.steps",
            "a GPU of product NVIDIA-L4, and a GPU of product NVIDIA-H200",
        ),
    ],
)
def test_what_no_node_can_be_is_refused(resources: list[Any], path: str, message: str) -> None:
    (problem,) = check_set(resources)
    assert problem.path == path
    assert message in problem.message


def test_what_runs_moves_where_it_may_no_longer_be_and_all_else_stays() -> None:
    resources = [pool(), model("m", nodeSelector={"disk": "ssd"}), model("other")]
    nodes = [gpu_node("a", 1, labels={"disk": "ssd"}), gpu_node("b", 1, labels={"disk": "ssd"})]
    (facts,) = facts_of(resources, nodes)
    plan = pack(facts)
    assert placed(plan) == {"m": ["a"], "other": ["a"]}
    moved = replace(facts, nodes=(replace(nodes[0], labels={}), nodes[1]), current=plan.current)
    assert placed(pack(moved)) == {"m": ["b"], "other": ["a"]}


def test_a_precision_says_nothing_of_a_cpu_that_stands_in_for_gpus() -> None:
    laptop = Node("laptop", (Gpu(0, 64 * GIB, is_cpu=True),))
    (facts,) = facts_of([pool(), model("m", **argument("quantization", "fp8"))], [laptop])
    assert placed(pack(facts)) == {"m": ["laptop"]}
    (facts,) = facts_of([pool(), model("m", **gpu_type(computeCapability=">= 8.9"))], [laptop])
    (unplaced,) = pack(facts).unplaced
    assert unplaced.reason == "NoGpuOfType"
    assert "no GPU (laptop)" in unplaced.message


LABELS = st.dictionaries(st.sampled_from("xy"), st.sampled_from("12"), max_size=2)
KINDS = st.sampled_from([A100, H100, L4, {"product": "NVIDIA-L40S"}])


@st.composite
def choosy_pools(draw: st.DrawFn) -> PoolFacts:
    """Draw pools of several kinds of nodes, whose models require labels and GPUs."""
    nodes = tuple(
        gpu_node(f"n{at}", draw(st.integers(1, 3)), 10, labels=draw(LABELS), **draw(KINDS))
        for at in range(draw(st.integers(1, 5)))
    )
    limit = draw(st.sampled_from([None, None, 3]))
    return PoolFacts(PoolKey("n/p"), nodes, tuple(map(draw, map(_choosy, draw(groups(6, 2, 2))))), 0, max_servers=limit)


@st.composite
def _choosy(draw: st.DrawFn, group: Group) -> Group:
    def required() -> NodeRequirements:
        products = draw(st.sampled_from([frozenset[str](), frozenset({"NVIDIA-L4", "NVIDIA-H100-80GB-HBM3"})]))
        capability = draw(st.sampled_from([CapabilityRange(), at_least(8.9)]))
        return NodeRequirements(tuple(sorted(draw(LABELS).items())), products, capability)

    return replace(group, demands=tuple(replace(demand, requires=required()) for demand in group.demands))


@given(choosy_pools())
@examples(60)
def test_no_model_is_on_a_node_that_lacks_what_it_requires(facts: PoolFacts) -> None:
    """Checked by the labels and capabilities themselves, with no code of the packer."""
    nodes = {node.name: node for node in facts.nodes}
    required = {demand.model: demand.requires for group in facts.groups for demand in group.demands}
    plan = pack(facts)
    for server in plan.servers:
        node = nodes[server.node]
        for placement in server.placements:
            needs = required[placement.model]
            assert set(needs.labels) <= set(node.labels.items())
            assert not needs.products or node.product in needs.products
            assert not needs.capability.terms or float(node.compute_capability or 0) >= 8.9
    assert pack(replace(facts, nodes=facts.nodes[::-1], groups=facts.groups[::-1])) == plan
    assert pack(replace(facts, current=plan.current)).servers == plan.servers


@given(choosy_pools())
@examples(40)
def test_a_group_that_lacks_a_node_has_that_reason(facts: PoolFacts) -> None:
    nowhere = {
        group.name
        for group in facts.groups
        if not any(all(node.meets(demand.requires) for demand in group.demands) for node in facts.nodes)
    }
    reported = {item.group for item in pack(facts).unplaced if item.reason in ("NoMatchingNode", "NoGpuOfType")}
    assert nowhere == reported


def test_models_alone_on_a_kind_of_gpu_do_not_take_it_from_those_that_need_it() -> None:
    """Whatever the order: the model that only the H100 will do finds it free."""
    nodes = (gpu_node("h", 1, 80, **H100), gpu_node("a", 1, 80, **A100))
    needs = NodeRequirements(products=frozenset({H100["product"]}))
    choosy = lone("z", Footprint(60 * GIB, 100))
    choosy = replace(choosy, demands=(replace(choosy.demands[0], requires=needs),))
    plan = pack(PoolFacts(PoolKey("n/p"), nodes, (lone("a", Footprint(60 * GIB, 100)), choosy)))
    assert placed(plan) == {"z": ["h"], "a": ["a"]}
