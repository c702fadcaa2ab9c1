"""Each rule with a deployment that it speaks of and one that it does not, and its words with their numbers."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.operator.planning.declared import model
from tests.operator.planning.topology.shapes import DGX, GIB, PAIRS, deployment, shape

from argosy.planning.facts import Gpu, Node
from argosy.planning.topology.deployment import Deployment, Machine
from argosy.planning.topology.rules import RULES, advice, refusals

WORDS = Path(__file__).parents[3] / "data" / "topology" / "advice.txt"
SMALL = Machine(gpus=1, joined=1, usable=24 * GIB)

CASES = {
    "HeadsNotDivided": deployment("llama-3-8b", tensor=3),
    "KeyValueHeadsNotDivided": deployment("qwen2.5-7b", tensor=7),
    "TooFewLayers": deployment("llama-3-8b", pipeline=40),
    "ExpertsNotDivided": deployment("mixtral-8x7b", tensor=4, options={"moe_tp_size": 4, "moe_ep_size": 4}),
    "TooLarge": deployment("llama-3-70b"),
    "AcrossNVLink": deployment("llama-3-70b", PAIRS, tensor=4),
    "DecodeHeavy": deployment("llama-3-70b", tensor=8, traffic=(100, 900)),
    "PrefillHeavy": deployment("llama-3-8b", traffic=(8000, 200)),
    "PipelineWithinNVLink": deployment("llama-3-70b", tensor=2, pipeline=2),
    "StagesUneven": deployment("llama-3-70b", pipeline=3, tensor=2),
    "KeyValueHeadsRepeated": deployment("qwen3-30b-a3b", tensor=8, options={"moe_ep_size": 8}),
    "ExpertsNarrow": deployment("qwen3-30b-a3b", tensor=4),
    "FewSequences": deployment("llama-3-8b", SMALL, sequences=64, traffic=(3000, 1000)),
}
"""A deployment of which each rule speaks; its words stand in tests/data/topology/advice.txt."""
SUITS: dict[str, list[Deployment]] = {
    "HeadsNotDivided": [deployment("llama-3-8b", tensor=t) for t in (1, 2, 4, 8, 16, 32)],
    "KeyValueHeadsNotDivided": [deployment("qwen2.5-7b", tensor=t) for t in (1, 2, 4, 28)],
    "TooFewLayers": [deployment("llama-3-8b", pipeline=32)],
    "ExpertsNotDivided": [
        deployment("mixtral-8x7b", tensor=4, options={"moe_tp_size": 2, "moe_ep_size": 2}),
        deployment("mixtral-8x7b", tensor=4, options={"moe_ep_size": 4}),
        deployment("mixtral-8x7b", tensor=4),
        deployment("llama-3-8b", tensor=4, options={"moe_tp_size": 9}),
    ],
    "TooLarge": [
        deployment("llama-3-70b", tensor=2),
        deployment("llama-3-70b", None),
        replace(deployment("llama-3-70b"), shape=replace(shape("llama-3-70b"), parameters=0)),
    ],
    "AcrossNVLink": [deployment("llama-3-70b", PAIRS, tensor=2), deployment("llama-3-70b", None, tensor=8)],
    "DecodeHeavy": [
        deployment("llama-3-70b", tensor=2, traffic=(100, 900)),
        deployment("llama-3-70b", tensor=8, traffic=(900, 100)),
        deployment("llama-3-70b", tensor=8),
        # nothing smaller fits: there is nothing to advise
        deployment("llama-3-70b", replace(DGX, usable=24 * GIB), tensor=8, traffic=(100, 900)),
    ],
    "PrefillHeavy": [
        deployment("llama-3-8b", traffic=(8000, 4000)),
        deployment("llama-3-8b", traffic=(800, 20)),
        deployment("llama-3-8b", SMALL, traffic=(8000, 200)),
        deployment("llama-3-8b", tensor=2, traffic=(8000, 200)),
        deployment("llama-3-8b", None, traffic=(8000, 200)),
        deployment("qwen2.5-0.5b", traffic=(8000, 200)),
    ],
    "PipelineWithinNVLink": [
        deployment("llama-3-70b", tensor=8, pipeline=2),
        deployment("llama-3-70b", tensor=2, pipeline=2, traffic=(100, 900)),
        deployment("llama-3-70b", PAIRS, tensor=2, pipeline=2),
    ],
    "StagesUneven": [deployment("llama-3-70b", pipeline=4), deployment("llama-3-70b")],
    "KeyValueHeadsRepeated": [deployment("llama-3-70b", tensor=8), deployment("llama-3-8b", tensor=3)],
    "ExpertsNarrow": [
        deployment("qwen3-30b-a3b", tensor=4, options={"moe_ep_size": 4}),
        deployment("qwen3-30b-a3b"),
        deployment("mixtral-8x7b", tensor=8),
    ],
    "FewSequences": [
        deployment("llama-3-8b", sequences=64, traffic=(3000, 1000)),
        deployment("llama-3-8b", SMALL, sequences=8, traffic=(3000, 1000)),
        deployment("llama-3-8b", SMALL, sequences=64),
    ],
}


def messages(result: Deployment) -> dict[str, str]:
    return {item.rule: item.message for item in advice(result)}


def test_every_rule_has_its_cases() -> None:
    assert [rule.name for rule in RULES] == list(CASES) == list(SUITS)


@pytest.mark.parametrize("rule", CASES)
def test_a_rule_says_what_is_so_with_the_numbers_and_what_to_do(rule: str) -> None:
    lines = dict(line.split(": ", 1) for line in WORDS.read_text().splitlines())
    assert messages(CASES[rule])[rule] == lines[rule]


@pytest.mark.parametrize("rule", SUITS)
def test_a_rule_keeps_silent_where_all_is_well(rule: str) -> None:
    assert [rule in messages(suit) for suit in SUITS[rule]] == [False] * len(SUITS[rule])


def test_what_refuses_is_reported_alone() -> None:
    result = advice(deployment("llama-3-70b", tensor=3, traffic=(100, 900)))
    assert [(item.rule, item.refuses) for item in result] == [("HeadsNotDivided", True)]


def test_decoding_on_fewer_gpus_may_take_a_lower_precision() -> None:
    machine = replace(DGX, usable=48 * GIB)
    assert (
        "take tensor 2 with weights of 8 bits"
        in messages(deployment("llama-3-70b", machine, tensor=8, traffic=(1, 9)))["DecodeHeavy"]
    )


@pytest.mark.parametrize("tensor", [1, 2, 4, 8])
def test_advice_that_is_followed_leaves_none(tensor: int) -> None:
    """A model that suits its traffic and its GPUs gets no advice."""
    traffic = (1000, 1000) if tensor <= 2 else (2000, 200)
    assert messages(deployment("llama-3-8b", tensor=tensor, traffic=traffic)) == {}


def test_what_is_declared_is_read_by_trtllm_builds_names() -> None:
    declared = model(
        "m",
        modelFormat={"name": "huggingface"},
        parallelism={"tensor": 2, "pipeline": 2},
        traffic={"promptTokens": 100, "outputTokens": 50},
        footprint={"gpus": 4},
        engine={
            "builder": "tensorrt_llm",
            "precision": "fp8",
            "accuracy": {"skip": "measured elsewhere"},
            "calibration": {"dataUri": "s3://b/prompts"},
            "options": {"max_seq_len": 4096, "max_batch_size": 16, "max_num_tokens": 2048, "kv_cache_dtype": "fp8"},
        },
    )
    result = Deployment.of(declared, shape("llama-3-70b")).split  # type: ignore[arg-type]
    assert (result.tensor, result.pipeline, result.weight_bits, result.cache_bits) == (2, 2, 8, 8)
    assert (result.length, result.sequences, result.step_tokens) == (4096, 16, 2048)


@pytest.mark.parametrize(
    ("traffic", "positions", "length"),
    [(None, 131072, 8192), (None, 2048, 2048), ((20000, 1000), 131072, 21000), ((20000, 1000), 4096, 4096)],
)
def test_the_longest_sequence_where_no_option_says(
    traffic: tuple[int, int] | None, positions: int, length: int
) -> None:
    spec: dict[str, Any] = {"modelFormat": {"name": "huggingface"}}
    if traffic:
        spec["traffic"] = {"promptTokens": traffic[0], "outputTokens": traffic[1]}
    llama = replace(shape("llama-3-8b"), max_positions=positions)
    assert Deployment.of(model("m", **spec), llama).split.length == length  # type: ignore[arg-type]


def node(name: str, memory: int, *nvlink: frozenset[int], gpus: int = 4) -> Node:
    return Node(name, tuple(Gpu(index, memory * GIB) for index in range(gpus)), nvlink=nvlink)


def test_the_best_machine_joins_the_most_gpus() -> None:
    nodes = [node("a", 192), node("b", 80, frozenset({0, 1, 2, 3})), node("c", 40, frozenset({0, 1}))]
    assert Machine.best_of(nodes, headroom=200) == Machine(4, 4, 64 * GIB)
    assert Machine.best_of([Node("cpu", (Gpu(0, GIB, is_cpu=True),))]) is None


def test_a_split_that_contradicts_the_shape_is_a_problem_of_its_file() -> None:
    wrong = model("m", modelFormat={"name": "vllm"}, parallelism={"tensor": 3}, footprint={"gpus": 3})
    right = model("n", modelFormat={"name": "vllm"}, parallelism={"tensor": 2}, footprint={"gpus": 2})
    shapes = {item.identity: shape("llama-3-8b") for item in (wrong, right)}
    (problem,) = refusals([wrong, right], shapes, {wrong.identity: "models.yaml"})
    assert str(problem).startswith(
        "models.yaml: InferenceModel default/m: spec: parallelism.tensor 3 does not divide the model's 32"
    )


@pytest.mark.parametrize(("precision", "bits"), [(None, 16), ("bf16", 16), ("tf32", 32), ("fp32", 32)])
def test_weights_are_retained_in_as_many_bits_as_the_precision_says(precision: str | None, bits: int) -> None:
    engine = {"builder": "tensorrt", **({"precision": precision} if precision else {})}
    result = Deployment.of(model("m", engine=engine), shape("llama-3-8b"))  # type: ignore[arg-type]
    assert result.split.weight_bits == bits
