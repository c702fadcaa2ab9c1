"""An ensemble's graph: one fault per mistake, at its field, naming what to do."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.operator.planning import declared

from argosy.api import Ensemble, InferenceModel
from argosy.api.problems import field_path
from argosy.planning.cycles import find_cycle
from argosy.planning.validation.graph import Invalid, Served, check_graph, members, nesting_cycle, step_cycle

Tensors = dict[str, tuple[str, list[int]]]


def tensors(declared: Tensors) -> list[dict[str, Any]]:
    return [{"name": name, "dataType": f"TYPE_{kind}", "dims": dims} for name, (kind, dims) in declared.items()]


def model(name: str, inputs: Tensors, outputs: Tensors, **spec: Any) -> InferenceModel:
    optional = spec.pop("optional", ())
    provided_inputs = [tensor | {"optional": tensor["name"] in optional} for tensor in tensors(inputs)]
    defaults = {"maxBatchSize": 8, "inputs": provided_inputs, "outputs": tensors(outputs), "footprint": None}
    return declared.model(name, **{**defaults, **spec})


def step(name: str, inputs: dict[str, str], outputs: dict[str, str], **more: Any) -> dict[str, Any]:
    return {"model": name, "inputs": inputs, "outputs": outputs} | more


def ensemble(steps: list[dict[str, Any]], **spec: Any) -> Ensemble:
    defaults = {
        "maxBatchSize": 8,
        "inputs": tensors({"text": ("STRING", [1])}),
        "outputs": tensors({"vector": ("FP32", [4])}),
        "steps": steps,
    }
    return declared.ensemble(spec.pop("name", "search"), **{**defaults, **spec})


TOKENIZE = model("tokenize", {"text": ("STRING", [1])}, {"ids": ("INT64", [-1])})
EMBED = model("embed", {"ids": ("INT64", [-1])}, {"vector": ("FP32", [4])})
FIRST = step("tokenize", {"text": "text"}, {"ids": "ids"})
SECOND = step("embed", {"ids": "ids"}, {"vector": "vector"})


def faults(of: Ensemble, *models: Served, invalid: tuple[str, ...] = ()) -> list[tuple[str, str]]:
    by_name = {served.name: served for served in models or (TOKENIZE, EMBED)}
    return [(field_path(fault.path), fault.message) for fault in check_graph(of, by_name, Invalid(invalid))]


def test_a_right_graph_has_no_fault_in_any_order_of_its_steps() -> None:
    assert faults(ensemble([FIRST, SECOND])) == []
    assert faults(ensemble([SECOND, FIRST])) == []


def test_a_tensor_may_have_several_readers() -> None:
    safe = model("safe", {"ids": ("INT64", [-1])}, {"score": ("FP32", [1])})
    outputs = tensors({"vector": ("FP32", [4]), "score": ("FP32", [1]), "ids": ("INT64", [-1])})
    third = step("safe", {"ids": "ids"}, {"score": "score"})
    assert faults(ensemble([FIRST, SECOND, third], outputs=outputs), TOKENIZE, EMBED, safe) == []


def test_an_unknown_model_is_named_with_the_nearest() -> None:
    assert faults(ensemble([FIRST, step("embd", {"ids": "ids"}, {"vector": "vector"})])) == [
        (
            "spec.steps[1].model",
            "there is no InferenceModel or Ensemble 'embd' in namespace 'default'; did you mean 'embed'?",
        )
    ]


def test_a_model_with_errors_of_its_own_is_no_second_problem() -> None:
    assert faults(ensemble([FIRST, SECOND]), TOKENIZE, invalid=("embed",)) == []


def test_a_model_of_another_pool_is_refused() -> None:
    other = model("embed", {"ids": ("INT64", [-1])}, {"vector": ("FP32", [4])}, poolRef={"name": "cpus"})
    assert faults(ensemble([FIRST, SECOND]), TOKENIZE, other) == [
        (
            "spec.steps[1].model",
            "'embed' is in pool 'cpus', and the ensemble in 'p'; all of an ensemble is served by one pool",
        )
    ]


@pytest.mark.parametrize(
    ("policy", "pinned", "served"),
    [
        (None, 3, True),
        (None, 2, False),
        (None, 4, False),
        ({"latest": {"numVersions": 1}}, 2, False),
        ({"latest": {"numVersions": 2}}, 2, True),
        ({"all": {}}, 1, True),
        ({"all": {}}, 4, False),
        ({"specific": {"versions": [1, 3]}}, 1, True),
        ({"specific": {"versions": [1, 3]}}, 2, False),
    ],
)
def test_a_pinned_version_must_be_one_that_may_be_served(policy: Any, pinned: int, served: bool) -> None:
    spec: dict[str, Any] = {"version": 3} | ({"versionPolicy": policy} if policy else {})
    embed = model("embed", {"ids": ("INT64", [-1])}, {"vector": ("FP32", [4])}, **spec)
    result = faults(ensemble([FIRST, SECOND | {"version": pinned}]), TOKENIZE, embed)
    assert [path for path, _ in result] == ([] if served else ["spec.steps[1].version"])


def test_inputs_and_outputs_that_the_model_lacks() -> None:
    first = step("tokenize", {"txt": "text"}, {"id": "ids"})
    assert faults(ensemble([first, SECOND])) == [
        ("spec.steps[0].inputs.txt", "'tokenize' has no input 'txt'; did you mean 'text'?"),
        ("spec.steps[0].outputs.id", "'tokenize' has no output 'id'; did you mean 'ids'?"),
        ("spec.steps[0].inputs", "'tokenize' requires input 'text'; map it to a tensor of the ensemble"),
    ]


def test_optional_inputs_may_stay_unmapped() -> None:
    optional = model(
        "tokenize",
        {"text": ("STRING", [1]), "limit": ("INT32", [1])},
        {"ids": ("INT64", [-1])},
        optional=("limit",),
    )
    assert faults(ensemble([FIRST, SECOND]), optional, EMBED) == []


def test_a_model_without_declared_tensors_is_checked_no_further() -> None:
    autofilled = model("tokenize", {}, {})
    assert faults(ensemble([step("tokenize", {"any": "text"}, {"other": "ids"}), SECOND]), autofilled, EMBED) == []


def test_readers_of_an_undeclared_tensor_still_agree_among_themselves() -> None:
    safe = model("safe", {"ids": ("INT32", [-1])}, {"score": ("FP32", [1])})
    outputs = tensors({"vector": ("FP32", [4]), "score": ("FP32", [1])})
    third = step("safe", {"ids": "ids"}, {"score": "score"})
    result = faults(ensemble([FIRST, SECOND, third], outputs=outputs), model("tokenize", {}, {}), EMBED, safe)
    assert result == [
        (
            "spec.steps[2].inputs.ids",
            "'ids' is TYPE_INT64 in steps[1] (embed) and TYPE_INT32 in steps[2] (safe); make them the same",
        )
    ]


def test_a_tensor_that_no_step_writes() -> None:
    result = faults(ensemble([FIRST, step("embed", {"ids": "idz"}, {"vector": "vector"})]))
    assert result == [
        ("spec.steps[1].inputs.ids", "no step writes 'idz', nor is it an input; did you mean 'ids'?"),
        ("spec.steps[0].outputs.ids", "nothing reads 'ids'; remove it, or map a step's input or an output to it"),
    ]


def test_an_output_that_no_step_writes() -> None:
    outputs = tensors({"vector": ("FP32", [4]), "score": ("FP32", [1])})
    paths = [path for path, _ in faults(ensemble([FIRST, SECOND], outputs=outputs))]
    assert paths == ["spec.outputs[1]"]


def test_an_input_that_no_step_reads() -> None:
    inputs = tensors({"text": ("STRING", [1]), "limit": ("INT32", [1])})
    result = faults(ensemble([FIRST, SECOND], inputs=inputs))
    assert result == [("spec.inputs[1]", "nothing reads 'limit'; remove it, or map a step's input or an output to it")]


def test_a_tensor_written_twice() -> None:
    twice = step("tokenize", {"text": "text"}, {"ids": "ids"})
    assert faults(ensemble([FIRST, twice, SECOND])) == [
        (
            "spec.steps[1].outputs.ids",
            "'ids' is already written by steps[0] (tokenize); give it another name",
        )
    ]


def test_a_step_may_not_write_an_input() -> None:
    echo = model("echo", {"text": ("STRING", [1])}, {"text": ("STRING", [1])})
    result = faults(ensemble([step("echo", {"text": "text"}, {"text": "text"}), FIRST, SECOND]), TOKENIZE, EMBED, echo)
    assert result == [
        (
            "spec.steps[0].outputs.text",
            "'text' is already written by the ensemble's inputs; give it another name",
        )
    ]


def test_a_cycle_is_named() -> None:
    mixing = model("tokenize", {"text": ("STRING", [1]), "back": ("FP32", [4])}, {"ids": ("INT64", [-1])})
    first = step("tokenize", {"text": "text", "back": "vector"}, {"ids": "ids"})
    circular = ensemble([first, SECOND])
    assert step_cycle(circular) == (0, 1)
    assert faults(circular, mixing, EMBED) == [
        (
            "spec.steps",
            (
                "the steps wait for each other: steps[0] (tokenize) → steps[1] (embed) → steps[0] (tokenize); "
                "a graph of steps has no circle"
            ),
        )
    ]


def test_a_step_that_reads_itself_is_a_cycle() -> None:
    assert step_cycle(ensemble([FIRST, step("embed", {"ids": "vector"}, {"vector": "vector"})])) == (1,)


def test_types_must_agree() -> None:
    embed = model("embed", {"ids": ("INT32", [-1])}, {"vector": ("FP16", [4])})
    assert faults(ensemble([FIRST, SECOND]), TOKENIZE, embed) == [
        (
            "spec.steps[1].inputs.ids",
            "'ids' is TYPE_INT64 in steps[0] (tokenize) and TYPE_INT32 in steps[1] (embed); make them the same",
        ),
        (
            "spec.outputs[0]",
            "'vector' is TYPE_FP16 in steps[1] (embed) and TYPE_FP32 in the ensemble's outputs; make them the same",
        ),
    ]


@pytest.mark.parametrize(
    ("written", "read", "fits"),
    [
        ([4], [4], True),
        ([4], [-1], True),
        ([-1, 3], [2, -1], True),
        ([4], [5], False),
        ([4], [4, 1], False),
    ],
)
def test_shapes_must_agree_but_for_dynamic_sizes(written: list[int], read: list[int], fits: bool) -> None:
    tokenize = model("tokenize", {"text": ("STRING", [1])}, {"ids": ("INT64", written)})
    embed = model("embed", {"ids": ("INT64", read)}, {"vector": ("FP32", [4])})
    result = faults(ensemble([FIRST, SECOND]), tokenize, embed)
    assert [path for path, _ in result] == ([] if fits else ["spec.steps[1].inputs.ids"])


def test_a_shape_fault_gives_both_shapes() -> None:
    embed = model("embed", {"ids": ("INT64", [2, 3, 1])}, {"vector": ("FP32", [8, 4])}, maxBatchSize=0)
    result = faults(ensemble([FIRST, SECOND]), TOKENIZE, embed)
    assert result == [
        (
            "spec.steps[1].inputs.ids",
            (
                "'ids' has shape [-1,-1] with the batch in steps[0] (tokenize) and [2,3,1] in steps[1] (embed); "
                "each size must be the same, or -1 on one side"
            ),
        )
    ]


def test_without_batching_the_batch_may_be_the_first_dimension() -> None:
    embed = model("embed", {"ids": ("INT64", [-1, -1])}, {"vector": ("FP32", [-1, 4])}, maxBatchSize=0)
    assert faults(ensemble([FIRST, SECOND]), TOKENIZE, embed) == []


def test_a_smaller_batch_is_refused() -> None:
    embed = model("embed", {"ids": ("INT64", [-1])}, {"vector": ("FP32", [4])}, maxBatchSize=4)
    assert faults(ensemble([FIRST, SECOND]), TOKENIZE, embed) == [
        (
            "spec.steps[1].model",
            "'embed' takes batches of at most 4, and the ensemble's maxBatchSize is 8; lower it, or raise the model's",
        )
    ]


def test_an_ensemble_may_be_a_step() -> None:
    inner = ensemble([FIRST, SECOND], name="inner")
    outer = ensemble([step("inner", {"text": "text"}, {"vector": "vector"})], name="outer")
    assert faults(outer, TOKENIZE, EMBED, inner) == []
    assert members(outer, {"inner": inner, "outer": outer}) == ("tokenize", "embed")
    assert nesting_cycle({"inner": inner, "outer": outer}) == ()


def test_ensembles_that_hold_one_another_are_detected() -> None:
    one = ensemble([step("two", {"text": "text"}, {"vector": "vector"})], name="one")
    two = ensemble([step("one", {"text": "text"}, {"vector": "vector"})], name="two")
    assert nesting_cycle({"one": one, "two": two}) == ("one", "two")
    assert members(one, {"one": one, "two": two}) == ()


def test_members_are_named_once() -> None:
    assert members(ensemble([FIRST, SECOND, FIRST]), {}) == ("tokenize", "embed")


@given(st.dictionaries(st.integers(0, 6), st.lists(st.integers(0, 6), max_size=3).map(tuple), max_size=7))
def test_a_cycle_is_one_and_none_means_an_order_exists(edges: dict[int, tuple[int, ...]]) -> None:
    cycle = find_cycle(edges)
    for node, following in zip(cycle, (*cycle[1:], *cycle[:1]), strict=True):
        assert following in edges[node]
    left = {node: set(after) & set(edges) for node, after in edges.items()}
    while free := [node for node, after in left.items() if not after]:
        left = {node: after - set(free) for node, after in left.items() if node not in free}
    assert bool(left) == bool(cycle)
    assert len(set(cycle)) == len(cycle)


def test_a_long_chain_needs_no_deep_stack() -> None:
    assert find_cycle({node: (node + 1,) for node in range(20_000)}) == ()


@pytest.mark.parametrize(
    ("model_format", "dims", "right"),
    [
        ("onnx", [4], True),
        ("onnx", [8, 4], True),
        ("onnx", [5], False),
        ("pytorch", [8, 4], True),
        ("pytorch", [4], False),
    ],
)
def test_a_batch_that_only_the_files_say_is_taken_either_way(model_format: str, dims: list[int], right: bool) -> None:
    embed = model(
        "embed",
        {"ids": ("INT64", [-1])},
        {"vector": ("FP32", dims)},
        maxBatchSize=None,
        modelFormat={"name": model_format},
    )
    wide = ensemble([FIRST, SECOND], maxBatchSize=0, outputs=tensors({"vector": ("FP32", [8, 4])}))
    matches = [path for path, message in faults(wide, TOKENIZE, embed) if "shape" in message]
    assert matches == ([] if right else ["spec.outputs[0]"])
