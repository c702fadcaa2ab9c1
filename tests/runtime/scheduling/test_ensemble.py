"""Ensembles as a state machine: chains, diamonds, streams, errors."""

import numpy as np
import pytest
from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.errors import ServingError, invalid
from argosy_runtime.messages import InferRequest, InferResponse, Tensor
from argosy_runtime.scheduling.ensemble import EnsembleRun, EnsembleSteps, Progress, StepCall


def tensor(name: str, value: float = 0.0) -> Tensor:
    return Tensor(name, "FP32", np.array([value], np.float32))


def ensemble(*steps: tuple[str, dict[str, str], dict[str, str]], inputs=("in",), outputs=("out",)) -> ModelConfig:
    config = ModelConfig(name="e")
    for name in inputs:
        config.input.add(name=name)
    for name in outputs:
        config.output.add(name=name)
    for model, input_map, output_map in steps:
        step = config.ensemble_scheduling.step.add(model_name=model, model_version=-1)
        step.input_map.update(input_map)
        step.output_map.update(output_map)
    return config


def step_config(name: str, version: int) -> ModelConfig:
    config = ModelConfig(name=name)
    config.model_transaction_policy.decoupled = name.startswith("stream")
    config.input.add(name="maybe", optional=True)
    return config


def start(config: ModelConfig, requested: tuple[str, ...] = ()) -> tuple[EnsembleRun, Progress]:
    steps = EnsembleSteps.of(config, step_config)
    request = InferRequest("e", {"in": tensor("in", 1)}, id="7", requested_outputs=requested)
    run = EnsembleRun(steps, request, "1")
    return run, run.start()


def answer(run: EnsembleRun, call: StepCall, *names: str, value: float = 0.0, final: bool = True) -> Progress:
    outputs = [tensor(name, value) for name in names]
    return run.receive(call, InferResponse(call.step.model, "1", outputs=outputs, final=final))


CHAIN = ensemble(("a", {"x": "in"}, {"y": "mid"}), ("b", {"x": "mid"}, {"y": "out"}))


def test_a_chain_passes_tensors_on_under_their_new_names_without_a_copy():
    run, progress = start(CHAIN)
    (first,) = progress.calls
    assert (first.step.model, first.request.id, list(first.request.inputs)) == ("a", "7", ["x"])
    made = tensor("y", 5)
    progress = run.receive(first, InferResponse("a", "1", outputs=[made]))
    (second,) = progress.calls
    assert second.request.inputs["x"].array is made.array
    progress = answer(run, second, "y", value=6)
    (response,) = progress.responses
    assert response.final
    assert [t.name for t in response.outputs] == ["out"]
    assert run.done


def test_independent_steps_start_together_and_a_join_waits_for_both():
    config = ensemble(
        ("a", {"x": "in"}, {"y": "left"}),
        ("b", {"x": "in"}, {"y": "right"}),
        ("c", {"l": "left", "r": "right"}, {"y": "out"}),
    )
    run, progress = start(config)
    a, b = progress.calls
    assert answer(run, b, "y").calls == []
    (join,) = answer(run, a, "y").calls
    assert set(join.request.inputs) == {"l", "r"}


def test_an_error_ends_the_run_and_later_answers_are_ignored():
    config = ensemble(("a", {"x": "in"}, {"y": "left"}), ("b", {"x": "in"}, {"y": "out"}))
    run, progress = start(config)
    a, b = progress.calls
    (response,) = run.receive(a, InferResponse("a", "1", error=invalid("no"))).responses
    assert response.error is not None
    assert response.final
    late = answer(run, b, "y")
    assert (late.calls, late.responses) == ([], [])


def test_a_step_that_leaves_an_output_out_fails_the_run():
    run, progress = start(CHAIN)
    (response,) = answer(run, progress.calls[0]).responses
    assert response.error is not None
    assert "output 'y'" in response.error.message


STREAM = ensemble(
    ("stream", {"x": "in"}, {"y": "token"}),
    ("side", {"x": "in"}, {"y": "score"}),
    ("b", {"t": "token", "s": "score"}, {"y": "out"}),
    outputs=("out", "score"),
)


def test_every_answer_of_a_decoupled_step_runs_the_steps_behind_it():
    run, progress = start(STREAM)
    stream, side = progress.calls
    assert answer(run, stream, "y", value=1, final=False).calls == []
    (first,) = answer(run, side, "y", value=9).calls
    (second,) = answer(run, stream, "y", value=2, final=False).calls
    assert [c.request.inputs["t"].array[0] for c in (first, second)] == [1, 2]
    early = answer(run, second, "y").responses
    assert [r.final for r in early] == [False]
    assert [t.name for t in early[0].outputs] == ["out", "score"]
    assert answer(run, first, "y").responses[0].final is False
    (end,) = run.receive(stream, InferResponse("stream", "1", final=True)).responses
    assert end.final
    assert end.is_empty
    assert run.done


def test_what_was_made_once_is_known_as_repeated_from_its_second_answer_on():
    run, progress = start(STREAM)
    stream, side = progress.calls
    answer(run, side, "y", value=9)
    seen = []
    for value in (1, 1, 2):
        (call,) = answer(run, stream, "y", value=value, final=False).calls
        seen += answer(run, call, "y", value=7).responses
    assert [[t.name for t in r.outputs] for r in seen] == [["out", "score"]] * 3
    assert [set(r.repeated) for r in seen] == [set(), {"score"}, {"score"}]


def test_an_answer_without_a_tensor_does_not_make_it_repeated():
    run, progress = start(STREAM, requested=("out",))
    stream, side = progress.calls
    answer(run, side, "y")
    for _ in range(2):
        (call,) = answer(run, stream, "y", final=False).calls
        (response,) = answer(run, call, "y").responses
        assert response.repeated == frozenset()


def test_what_an_inner_ensemble_repeats_is_repeated_by_the_outer():
    config = ensemble(("stream", {"x": "in"}, {"y": "out", "s": "score"}), outputs=("out", "score"))
    run, progress = start(config)
    (call,) = progress.calls
    outputs = [tensor("y", 1), tensor("s", 9)]
    (first,) = run.receive(call, InferResponse("stream", "1", outputs=outputs, final=False)).responses
    again = InferResponse("stream", "1", outputs=outputs, final=False, repeated=frozenset({"s"}))
    (second,) = run.receive(call, again).responses
    assert (first.repeated, second.repeated) == (frozenset(), frozenset({"score"}))


def test_the_last_answer_of_a_stream_is_final_where_nothing_is_open():
    run, progress = start(STREAM)
    stream, side = progress.calls
    answer(run, side, "y")
    (last,) = answer(run, stream, "y", final=True).calls
    (response,) = answer(run, last, "y").responses
    assert response.final


def test_optional_inputs_that_nobody_writes_are_left_out():
    config = ensemble(("a", {"x": "in", "maybe": "extra"}, {"y": "out"}), inputs=("in", "extra"))
    _, progress = start(config)
    assert list(progress.calls[0].request.inputs) == ["x"]


def test_two_independent_streams_cannot_be_joined():
    config = ensemble(
        ("stream1", {"x": "in"}, {"y": "s"}),
        ("stream2", {"x": "in"}, {"y": "t"}),
        ("c", {"l": "s", "r": "t"}, {"y": "out"}),
    )
    with pytest.raises(ServingError, match="two independent decoupled steps"):
        EnsembleSteps.of(config, step_config)


def test_a_cycle_is_refused():
    config = ensemble(("a", {"x": "q"}, {"y": "p"}), ("b", {"x": "p"}, {"y": "q"}))
    with pytest.raises(ServingError, match="cycle"):
        EnsembleSteps.of(config, step_config)


def test_requested_outputs_only():
    config = ensemble(("a", {"x": "in"}, {"y": "out", "z": "extra"}), outputs=("out", "extra"))
    run, progress = start(config, requested=("extra",))
    (response,) = answer(run, progress.calls[0], "y", "z").responses
    assert [t.name for t in response.outputs] == ["extra"]


@pytest.mark.parametrize(
    ("outputs", "takers", "expected"),
    [
        (("out",), "bc", {"y", "z"}),
        (("out",), "b", {"z"}),
        (("out", "mid"), "bc", {"z"}),
    ],
    ids=["both readers can", "one reader cannot", "a client reads it too"],
)
def test_what_only_models_on_devices_read_may_stay_there(
    outputs: tuple[str, ...], takers: str, expected: set[str]
) -> None:
    config = ensemble(
        ("a", {"x": "in"}, {"y": "mid", "z": "other", "unread": "unread"}),
        ("b", {"x": "mid", "w": "other"}, {"y": "out"}),
        ("c", {"x": "mid"}, {"y": "end"}),
        outputs=outputs,
    )
    steps = EnsembleSteps.of(config, step_config, lambda model: model.name in takers)
    assert [set(step.device_outputs) for step in steps.steps] == [expected, set(), set()]
    run = EnsembleRun(steps, InferRequest("e", {"in": tensor("in")}), "1")
    (first,) = run.start().calls
    assert first.request.device_outputs == expected
