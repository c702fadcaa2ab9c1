"""Ensembles as a state machine: chains, diamonds, streams, errors."""

import numpy as np
import pytest
from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.errors import ServingError, invalid
from argosy_runtime.messages import InferRequest, InferResponse, RequestTemplate, Tensor
from argosy_runtime.scheduling.ensemble import EnsembleRun, Progress, StepCall
from argosy_runtime.scheduling.ensemble_steps import EnsembleSteps
from argosy_runtime.tensors import raw_tensor


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
    run = EnsembleRun(steps, request)
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
    unread = answer(run, b, "y")
    assert (unread.calls, unread.responses) == ([], [])


def test_an_error_of_a_step_names_the_ensemble():
    run, progress = start(CHAIN)
    failed = InferResponse("a", "1", error=invalid("no"))
    (response,) = run.receive(progress.calls[0], failed).responses
    assert response.error is not None
    assert response.error.message == "in ensemble 'e', no"
    assert response.error.kind is failed.error.kind


def test_a_step_runs_without_what_the_step_before_it_left_out():
    config = ensemble(("a", {"x": "in"}, {"y": "mid", "z": "more"}), ("b", {"x": "mid", "maybe": "more"}, {"y": "out"}))
    run, progress = start(config)
    (b,) = answer(run, progress.calls[0], "y").calls
    assert list(b.request.inputs) == ["x"]
    (response,) = answer(run, b, "y").responses
    assert [tensor.name for tensor in response.outputs] == ["out"]


def test_a_step_runs_also_if_all_of_its_inputs_are_left_out():
    run, progress = start(CHAIN)
    (b,) = answer(run, progress.calls[0]).calls
    assert b.request.inputs == {}


def test_an_output_that_a_step_left_out_is_missing_in_the_response():
    config = ensemble(("a", {"x": "in"}, {"y": "out", "z": "other"}), outputs=("out", "other"))
    run, progress = start(config)
    (response,) = answer(run, progress.calls[0], "z").responses
    assert (response.error, [tensor.name for tensor in response.outputs]) == (None, ["other"])
    run, progress = start(config, requested=("out",))
    (response,) = answer(run, progress.calls[0], "z").responses
    assert (response.error, response.outputs, response.final) == (None, [], True)


def test_answers_of_a_stream_may_leave_out_different_outputs():
    config = ensemble(("stream", {"x": "in"}, {"y": "out", "z": "other"}), outputs=("out", "other"))
    run, progress = start(config)
    (call,) = progress.calls
    names = []
    for present in (("y",), ("z",), (), (), ("y", "z")):
        (response,) = answer(run, call, *present, final=False).responses
        assert (response.is_empty, response.repeated) == (False, frozenset())
        names.append([tensor.name for tensor in response.outputs])
    assert names == [["out"], ["other"], [], [], ["out", "other"]]


def test_steps_run_behind_an_answer_of_a_stream_without_outputs_and_not_behind_a_bare_flag():
    config = ensemble(("stream", {"x": "in"}, {"y": "token"}), ("b", {"maybe": "token"}, {"y": "out"}))
    run, progress = start(config)
    (stream,) = progress.calls
    (behind,) = answer(run, stream, final=False).calls
    assert behind.request.inputs == {}
    assert run.receive(stream, InferResponse(final=True)).calls == []
    (response,) = answer(run, behind, "y").responses
    assert (response.final, [tensor.name for tensor in response.outputs]) == (True, ["out"])


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


def test_a_repeated_step_is_recognized_from_its_second_answer_on():
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


def test_optional_inputs_that_no_one_writes_are_left_out():
    config = ensemble(("a", {"x": "in", "maybe": "extra"}, {"y": "out"}), inputs=("in", "extra"))
    _, progress = start(config)
    assert list(progress.calls[0].request.inputs) == ["x"]


def test_a_step_that_requires_what_the_request_leaves_out_runs_without_it():
    config = ensemble(("a", {"x": "in", "required": "extra"}, {"y": "out"}), inputs=("in", "extra"))
    _, progress = start(config)
    assert list(progress.calls[0].request.inputs) == ["x"], "the model refuses it, in its own words"


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


FORK = ensemble(
    ("a", {"x": "in"}, {"t1": "t1", "t2": "t2"}),
    ("b", {"x": "t1"}, {"y": "B"}),
    ("c", {"x": "t2"}, {"y": "C"}),
    ("d", {"x": "C"}, {"y": "D"}),
    outputs=("B", "C", "D"),
)


def steps_run(config: ModelConfig, requested: tuple[str, ...]) -> tuple[list[str], InferResponse]:
    """Return the models run for these outputs, and the response."""
    run, progress = start(config, requested)
    calls, models, responses = list(progress.calls), [], list(progress.responses)
    while calls:
        call = calls.pop(0)
        models.append(call.step.model)
        progress = answer(run, call, *call.step.outputs)
        calls += progress.calls
        responses += progress.responses
    (response,) = responses
    assert response.final
    return models, response


@pytest.mark.parametrize(
    ("requested", "models"),
    [
        (("B",), ["a", "b"]),
        (("C",), ["a", "c"]),
        (("D",), ["a", "c", "d"]),
        (("D", "B"), ["a", "b", "c", "d"]),
        ((), ["a", "b", "c", "d"]),
    ],
)
def test_steps_that_only_make_other_outputs_do_not_run(requested, models):
    ran, response = steps_run(FORK, requested)
    assert ran == models
    assert [t.name for t in response.outputs] == list(requested or ("B", "C", "D"))


def test_an_output_that_only_such_steps_read_may_be_left_out():
    run, progress = start(FORK, requested=("B",))
    (call,) = progress.calls
    assert call.request.requested_outputs == ("t1", "t2")
    (b,) = answer(run, call, "t1").calls
    (response,) = answer(run, b, "y").responses
    assert response.error is None
    run, progress = start(FORK, requested=("B", "C"))
    calls = answer(run, progress.calls[0], "t1").calls
    assert [list(call.request.inputs) for call in calls] == [["x"], []]


def test_a_step_whose_output_nothing_reads_runs_all_the_same():
    config = ensemble(
        ("a", {"x": "in"}, {"y": "B"}),
        ("log", {"x": "in"}, {"y": "written"}),
        ("c", {"x": "in"}, {"y": "C"}),
        outputs=("B", "C"),
    )
    assert steps_run(config, ("B",))[0] == ["a", "log"]


def test_without_its_decoupled_step_an_ensemble_answers_once():
    models, response = steps_run(STREAM, ("score",))
    assert models == ["side"]
    assert [t.name for t in response.outputs] == ["score"]


def raw(name: str, value: float) -> Tensor:
    return raw_tensor(name, "FP32", (1,), np.float32(value).tobytes())


def planned_run(template: RequestTemplate | None, steps: EnsembleSteps, **fields) -> tuple[EnsembleRun, Progress]:
    data = np.float32(1).tobytes()
    request = template.request("7", [data]) if template else InferRequest("e", {"in": raw("in", 1)}, id="7", **fields)
    run = EnsembleRun(steps, request)
    return run, run.start()


def through(run: EnsembleRun, progress: Progress) -> tuple[list[InferRequest], InferResponse]:
    """Return the requests of a chain's steps, and its response."""
    seen = []
    while progress.calls:
        (call,) = progress.calls
        seen.append(call.request)
        progress = run.receive(call, InferResponse("a", "1", outputs=[raw("y", 2)]))
    (response,) = progress.responses
    return seen, response


def test_steps_of_equal_requests_have_one_plan_and_pass_bytes_through():
    steps = EnsembleSteps.of(CHAIN, step_config)
    template = RequestTemplate(InferRequest("e", {"in": raw("in", 0)}, parameters={"p": 1}))
    first, second = (through(*planned_run(template, steps)) for _ in range(2))
    for one, other in zip(first[0], second[0], strict=True):
        assert one.template is not None
        assert one.template is other.template
        assert (one.id, one.parameters) == ("7", {"p": 1})
    assert [step.model_name for step in first[0]] == ["a", "b"]
    assert first[0][1].raw == [np.float32(2).tobytes()]
    assert first[1].template is second[1].template
    assert [(t.name, t.array[0]) for t in first[1].outputs] == [("out", 2)]


def test_steps_of_one_template_have_the_sequences_of_their_requests():
    steps = EnsembleSteps.of(CHAIN, step_config)
    template = RequestTemplate(InferRequest("e", {"in": raw("in", 0)}))
    seen = []
    for sequence in ((3, True, False), (4, False, True)):
        request = template.request("7", [np.float32(1).tobytes()])
        request.join(*sequence)
        run = EnsembleRun(steps, request)
        seen.append(through(run, run.start())[0])
    assert [[step.sequence_id for step in requests] for requests in seen] == [[3, 3], [4, 4]]
    assert [[step.sequence_start for step in requests] for requests in seen] == [[True] * 2, [False] * 2]
    assert seen[0][0].template is seen[1][0].template


def test_requests_without_a_plan_share_one_where_they_say_nothing_more():
    steps = EnsembleSteps.of(CHAIN, step_config)
    (plain, _), (again, _) = (through(*planned_run(None, steps)) for _ in range(2))
    assert plain[0].template is again[0].template is not None
    for fields in ({"parameters": {"p": 1}}, {"priority": 1}, {"timeout_us": 5}, {"sequence_id": 3}):
        (own, _) = through(*planned_run(None, steps, **fields))
        assert own[0].template is None
        ((name, value),) = fields.items()
        assert getattr(own[0], name) == value


def test_a_tensor_of_another_shape_has_another_template():
    steps = EnsembleSteps.of(CHAIN, step_config)
    run, progress = planned_run(None, steps)
    (call,) = progress.calls
    wide = raw_tensor("y", "FP32", (2,), bytes(8))
    (small, *_), _ = through(*planned_run(None, steps))
    (second,) = run.receive(call, InferResponse("a", "1", outputs=[wide])).calls
    assert second.request.template is not small.template
    assert second.request.inputs["x"].shape == (2,)


def test_a_long_stream_does_not_keep_what_it_had():
    run, progress = start(STREAM)
    stream, side = progress.calls
    answer(run, side, "y")
    for _ in range(3):
        (call,) = answer(run, stream, "y", final=False).calls
        assert len(stream.scope.children) == 1
        answer(run, call, "y")
        assert stream.scope.children == []


def test_a_stream_of_streams_answers_at_the_depth_of_its_deepest_output():
    config = ensemble(
        ("stream1", {"x": "in"}, {"y": "word"}),
        ("stream2", {"x": "word"}, {"y": "letter"}),
        ("b", {"w": "word", "l": "letter"}, {"y": "out"}),
        outputs=("out", "word"),
    )
    run, progress = start(config)
    (words,) = progress.calls
    seen = []
    for word in (1, 2):
        (letters,) = answer(run, words, "y", value=word, final=False).calls
        for letter in (3, 4):
            (join,) = answer(run, letters, "y", value=letter, final=letter == 4).calls
            assert [join.request.inputs[name].array[0] for name in ("w", "l")] == [word, letter]
            seen += answer(run, join, "y", value=10 * word + letter).responses
    assert [[t.array[0] for t in r.outputs] for r in seen] == [[13, 1], [14, 1], [23, 2], [24, 2]]
    assert [set(r.repeated) for r in seen] == [set(), {"word"}, set(), {"word"}]
    (end,) = run.receive(words, InferResponse(final=True)).responses
    assert end.final
    assert words.scope.children == []


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
    run = EnsembleRun(steps, InferRequest("e", {"in": tensor("in")}))
    (first,) = run.start().calls
    assert first.request.device_outputs == expected
