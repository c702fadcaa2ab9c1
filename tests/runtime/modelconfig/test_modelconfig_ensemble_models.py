"""An ensemble against its models."""

import pytest

from argosy_runtime.modelconfig import Violation, check_steps, is_decoupled, parse_text

ENSEMBLE = """
name: "e" platform: "ensemble" max_batch_size: 8
input { name: "IN" data_type: TYPE_STRING dims: [ 1 ] }
output { name: "OUT" data_type: TYPE_FP32 dims: [ 2 ] }
ensemble_scheduling {
  step {
    model_name: "pre" model_version: -1
    input_map { key: "TEXT" value: "IN" } output_map { key: "IDS" value: "ids" }
  }
  step {
    model_name: "net" model_version: -1
    input_map { key: "IDS" value: "ids" } output_map { key: "PROBS" value: "OUT" }
  }
}
"""
PRE = """
name: "pre" max_batch_size: 8
input { name: "TEXT" data_type: TYPE_STRING dims: [ 1 ] }
output { name: "IDS" data_type: TYPE_INT64 dims: [ -1 ] }
"""
NET = """
name: "net" max_batch_size: 8
input { name: "IDS" data_type: TYPE_INT64 dims: [ 128 ] }
output { name: "PROBS" data_type: TYPE_FP32 dims: [ 2 ] }
"""


def checked(ensemble: str = ENSEMBLE, **models: str) -> list[Violation]:
    texts = {"pre": PRE, "net": NET, **models}
    return check_steps(parse_text(ensemble), {name: parse_text(text) for name, text in texts.items() if text})


def test_models_that_fit() -> None:
    assert checked() == []


def test_a_model_that_is_not_there() -> None:
    message = "ensemble e contains models that are not available or ambiguous: net"
    assert checked(net="") == [Violation("ensemble_scheduling.step[1].model_name", message)]


CASES = {
    "unknown input": (
        {"pre": PRE.replace('"TEXT"', '"WORDS"')},
        'ensemble_scheduling.step[0].input_map["TEXT"]',
        "in ensemble e, ensemble tensor IN is mapping to non-existing input TEXT in model pre",
    ),
    "unmapped input": (
        {"net": NET + "input { name: 'MASK' data_type: TYPE_INT64 dims: 1 }"},
        'ensemble_scheduling.step[1].input_map["MASK"]',
        "in ensemble e, input MASK in model net is not mapped to any ensemble tensors",
    ),
    "unknown output": (
        {"net": NET.replace('"PROBS"', '"SCORES"')},
        'ensemble_scheduling.step[1].output_map["PROBS"]',
        "in ensemble e, ensemble tensor OUT is mapped from non-existing output PROBS in model net",
    ),
    "datatype between steps": (
        {"net": NET.replace("TYPE_INT64", "TYPE_INT32")},
        'ensemble_scheduling.step[1].input_map["IDS"]',
        (
            "in ensemble e, ensemble tensor ids: inconsistent data type: TYPE_INT64 is inferred from model pre while "
            "TYPE_INT32 is inferred from model net"
        ),
    ),
    "datatype at the edge": (
        {"net": NET.replace("TYPE_FP32", "TYPE_FP16")},
        'ensemble_scheduling.step[1].output_map["PROBS"]',
        (
            "in ensemble e, ensemble tensor OUT: inconsistent data type: TYPE_FP32 is inferred from model e while "
            "TYPE_FP16 is inferred from model net"
        ),
    ),
    "shape": (
        {"net": NET.replace("dims: [ 2 ]", "dims: [ 3 ]")},
        'ensemble_scheduling.step[1].output_map["PROBS"]',
        (
            "in ensemble e, ensemble tensor OUT: inconsistent shape: [-1,2] is inferred from model e while [-1,3] is "
            "inferred from model net"
        ),
    ),
    "rank": (
        {"net": NET.replace("dims: [ 128 ]", "dims: [ 1, 128 ]")},
        'ensemble_scheduling.step[1].input_map["IDS"]',
        (
            "in ensemble e, ensemble tensor ids: inconsistent shape: [-1,-1] is inferred from model pre while "
            "[-1,1,128] is inferred from model net"
        ),
    ),
    "batch": (
        {"net": NET.replace("max_batch_size: 8", "max_batch_size: 4")},
        "ensemble_scheduling.step[1].model_name",
        (
            "ensemble e allows maximum batch size 8, but it contains model net which only allows maximum batch size "
            "to be 4"
        ),
    ),
}


@pytest.mark.parametrize(("models", "path", "message"), CASES.values(), ids=CASES)
def test_every_mismatch(models: dict[str, str], path: str, message: str) -> None:
    assert Violation(path, message) in checked(**models)


def test_an_optional_input_need_not_be_mapped() -> None:
    net = NET + "input { name: 'MASK' data_type: TYPE_INT64 dims: 1 optional: true }"
    assert checked(net=net) == []


def test_without_batching_the_first_dimension_may_be_the_batch() -> None:
    net = NET.replace("max_batch_size: 8", "").replace("[ 128 ]", "[ -1, 128 ]").replace("[ 2 ]", "[ -1, 2 ]")
    assert checked(net=net) == []
    fixed = net.replace("[ -1, 2 ]", "[ 2 ]")
    # The batch and the dims agree pairwise here as well: Triton leaves this one to run time.
    assert checked(net=fixed) == []
    assert len(checked(net=net.replace("[ -1, 2 ]", "[ 1, 1, 2 ]"))) == 1


def test_an_ensembles_reshape_is_what_its_models_see() -> None:
    ensemble = ENSEMBLE.replace("TYPE_FP32 dims: [ 2 ]", "TYPE_FP32 dims: [ 1, 2 ] reshape { shape: [ 2 ] }")
    assert checked(ensemble) == []


DECOUPLED = "model_transaction_policy { decoupled: true }"


def test_a_decoupled_step_makes_the_ensemble_decoupled() -> None:
    config = parse_text(ENSEMBLE)
    models = {"pre": parse_text(PRE), "net": parse_text(NET)}
    assert not is_decoupled(config, models)
    assert is_decoupled(config, {**models, "net": parse_text(NET + DECOUPLED)})
    assert checked(net=NET + DECOUPLED) == []


FORK = """
name: "e" platform: "ensemble"
input { name: "IN" data_type: TYPE_FP32 dims: 1 }
output { name: "OUT" data_type: TYPE_FP32 dims: 1 }
ensemble_scheduling {
  step { model_name: "l" input_map { key: "X" value: "IN" } output_map { key: "Y" value: "a" } }
  step { model_name: "r" input_map { key: "X" value: "IN" } output_map { key: "Y" value: "b" } }
  step {
    model_name: "join"
    input_map { key: "X" value: "a" } input_map { key: "Z" value: "b" } output_map { key: "Y" value: "OUT" }
  }
}
"""
UNARY = "input { name: 'X' data_type: TYPE_FP32 dims: 1 } output { name: 'Y' data_type: TYPE_FP32 dims: 1 }"
JOIN = UNARY + "input { name: 'Z' data_type: TYPE_FP32 dims: 1 }"


def test_responses_of_two_decoupled_models_cannot_be_paired() -> None:
    models = {"l": UNARY + DECOUPLED, "r": UNARY + DECOUPLED, "join": JOIN}
    message = "in ensemble e, step of model 'join' receives inputs originated from different decoupled models"
    result = check_steps(parse_text(FORK), {name: parse_text(text) for name, text in models.items()})
    assert result == [Violation("ensemble_scheduling.step[2]", message)]


@pytest.mark.parametrize("join", [JOIN, JOIN + DECOUPLED], ids=["once", "decoupled"])
def test_every_response_of_a_decoupled_model_goes_with_what_is_there_once(join: str) -> None:
    text = FORK.replace(
        'output { name: "OUT"', 'output { name: "b" data_type: TYPE_FP32 dims: 1 } output { name: "OUT"'
    )
    models = {"l": UNARY + DECOUPLED, "r": UNARY, "join": join}
    assert check_steps(parse_text(text), {name: parse_text(model) for name, model in models.items()}) == []


def test_outputs_of_two_decoupled_models_cannot_be_paired() -> None:
    text = FORK.replace(
        'output { name: "OUT"', 'output { name: "a" data_type: TYPE_FP32 dims: 1 } output { name: "OUT"'
    ).replace(
        'key: "X" value: "a" } input_map { key: "Z" value: "b"',
        'key: "X" value: "IN" } input_map { key: "Z" value: "b"',
    )
    models = {"l": UNARY + DECOUPLED, "r": UNARY, "join": JOIN + DECOUPLED}
    result = check_steps(parse_text(text), {name: parse_text(model) for name, model in models.items()})
    assert [violation.path for violation in result] == ["output"]
