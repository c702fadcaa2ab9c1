"""An ensemble by itself: its graph and the rules on it."""

import pytest

from argosy_runtime.modelconfig import EnsembleGraph, Violation, check, parse_text

IO = 'input { name: "%s" data_type: TYPE_FP32 dims: 4 }'
OUT = 'output { name: "%s" data_type: TYPE_FP32 dims: 4 }'


def ensemble(steps: str, inputs: str = "IN", outputs: str = "OUT", more: str = "") -> str:
    tensors = [IO % name for name in inputs.split()] + [OUT % name for name in outputs.split()]
    return f'name: "e" platform: "ensemble" {more} {" ".join(tensors)} ensemble_scheduling {{ {steps} }}'


def step(model: str, inputs: dict[str, str], outputs: dict[str, str]) -> str:
    maps = [("input_map", inputs), ("output_map", outputs)]
    entries = [f'{name} {{ key: "{k}" value: "{v}" }}' for name, m in maps for k, v in m.items()]
    return f'step {{ model_name: "{model}" model_version: -1 {" ".join(entries)} }}'


CHAIN = step("a", {"X": "IN"}, {"Y": "mid"}) + step("b", {"X": "mid"}, {"Y": "OUT"})


def violations(text: str) -> list[Violation]:
    return check(parse_text(text), "e")


def test_a_chain_is_good() -> None:
    assert violations(ensemble(CHAIN)) == []


@pytest.mark.parametrize(
    ("more", "path", "message"),
    [
        ("instance_group {}", "instance_group", "instance group should not be specified for ensemble 'e'"),
        ("optimization {}", "optimization", "optimization should not be specified for ensemble 'e'"),
        ("model_warmup {}", "model_warmup", "model_warmup can not be specified for ensemble 'e'"),
    ],
)
def test_what_an_ensemble_may_not_set(more: str, path: str, message: str) -> None:
    assert violations(ensemble(CHAIN, more=more)) == [Violation(path, message)]


def test_scheduling_and_platform_belong_together() -> None:
    message = "ensemble scheduling must be set for ensemble e whose platform is ensemble"
    assert Violation("ensemble_scheduling", message) in violations('name: "e" platform: "ensemble"')
    python = ensemble(CHAIN).replace('platform: "ensemble"', 'backend: "python"')
    message = "ensemble scheduling cannot be set for model 'e' whose platform is not ensemble"
    assert violations(python) == [Violation("platform", message)]


CASES = {
    "no step": (
        ensemble("", inputs="", outputs=""),
        Violation("ensemble_scheduling.step", "must specify 'step' for ensemble 'e'"),
    ),
    "no model": (
        ensemble(step("", {"X": "IN"}, {"Y": "OUT"})),
        Violation("ensemble_scheduling.step[0].model_name", "must specify 'model_name' in step 0 of ensemble 'e'"),
    ),
    "no input map": (
        ensemble(CHAIN + step("c", {}, {"Y": "z"})),
        Violation("ensemble_scheduling.step[2].input_map", "must specify 'input_map' in step 2 of ensemble 'e'"),
    ),
    "no output map": (
        ensemble(CHAIN + step("c", {"X": "mid"}, {})),
        Violation("ensemble_scheduling.step[2].output_map", "must specify 'output_map' in step 2 of ensemble 'e'"),
    ),
    "written twice": (
        ensemble(CHAIN + step("c", {"X": "IN"}, {"Y": "mid"})),
        Violation(
            'ensemble_scheduling.step[2].output_map["Y"]',
            "ensemble tensor 'mid' can appear in an output map only once for ensemble 'e' step 2",
        ),
    ),
    "input unused": (
        ensemble(CHAIN, inputs="IN MORE"),
        Violation("input[1].name", "ensemble input 'MORE' for ensemble e is not used"),
    ),
    "output unused": (
        ensemble(CHAIN, outputs="OUT MORE"),
        Violation("output[1].name", "ensemble output 'MORE' for ensemble e is not used"),
    ),
    "output unwritten": (
        ensemble(step("a", {"X": "IN", "Z": "nowhere"}, {"Y": "mid"}) + step("b", {"X": "mid"}, {"Y": "OUT"})),
        Violation(
            "output[0].name",
            "output 'OUT' for ensemble 'e' is not written: at least one of its depending tensors, 'nowhere', "
            "is not connected",
        ),
    ),
    "tensor never written": (
        ensemble(CHAIN + step("c", {"X": "nowhere"}, {"Y": "z"})),
        Violation(
            'ensemble_scheduling.step[2].input_map["X"]',
            "ensemble tensor 'nowhere' is unused in ensemble 'e'",
        ),
    ),
    "tensor never read": (
        ensemble(CHAIN + step("c", {"X": "mid"}, {"Y": "z"})),
        Violation(
            'ensemble_scheduling.step[2].output_map["Y"]',
            "ensemble tensor 'z' is unused in ensemble 'e'",
        ),
    ),
}


@pytest.mark.parametrize(("text", "expected"), CASES.values(), ids=CASES)
def test_every_rule_of_the_flow(text: str, expected: Violation) -> None:
    assert expected in violations(text)


def test_a_cycle_is_an_output_that_is_never_written() -> None:
    cycle = step("a", {"X": "IN", "Z": "back"}, {"Y": "mid"}) + step("b", {"X": "mid"}, {"Y": "OUT", "W": "back"})
    result = violations(ensemble(cycle))
    assert result[0].message.startswith("output 'OUT' for ensemble 'e' is not written: at least one of its depending")
    assert {violation.message for violation in result[1:]} == {
        "ensemble tensor 'back' is unused in ensemble 'e'",
        "ensemble tensor 'mid' is unused in ensemble 'e'",
    }


def test_an_output_may_be_read_by_a_step_as_well() -> None:
    assert violations(ensemble(CHAIN, outputs="OUT mid")) == []


def test_the_graph_of_a_diamond() -> None:
    steps = (
        step("join", {"L": "left", "R": "right"}, {"Y": "OUT"})
        + step("l", {"X": "start"}, {"Y": "left"})
        + step("r", {"X": "start"}, {"Y": "right"})
        + step("pre", {"X": "IN"}, {"Y": "start"})
    )
    graph = EnsembleGraph.parse(parse_text(ensemble(steps)))
    assert [[s.model_name for s in wave] for wave in graph.waves()] == [["pre"], ["l", "r"], ["join"]]
    assert graph.reachable() == {"IN", "start", "left", "right", "OUT"}
    assert [s.index for s in graph.consumers("start")] == [1, 2]
    producer = graph.producer("left")
    assert producer is not None
    assert producer.model_name == "l"
    assert graph.producer("IN") is None
    assert graph.models == {"join", "l", "r", "pre"}
    assert graph.steps[0].inputs == {"L": "left", "R": "right"}
    assert graph.steps[0].model_version == -1
