"""Copies of requests at versions that a test has in its hand: what the client sees, and what is counted."""

import logging

import numpy as np
import pytest
from google.protobuf import text_format
from tests.runtime.execution.fakes import SECOND
from tests.runtime.execution.shadow.shadowed import Shadowed
from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.comparison.differences import DifferenceKind
from argosy_runtime.errors import FailureReason, ServingError, cancelled, internal, invalid
from argosy_runtime.execution.shadow.mirror import Mirror
from argosy_runtime.execution.shadow.queue import ShadowQueue
from argosy_runtime.execution.shadow.requests import ShadowRequests
from argosy_runtime.messages import InferRequest, InferResponse, RequestTemplate, Tensor
from argosy_runtime.modelconfig.parameters.traffic import MILLIONTHS, OutputTolerance, Shadow
from argosy_runtime.telemetry.shadow.statistics import MOST_EXAMPLES, Obstacle, ShadowOutcome


async def test_the_client_gets_its_answer_before_the_copy_is_even_looked_at() -> None:
    one = Shadowed()
    one.send()
    assert one.order == ["1 got r", "2 got r"]
    one.stable.answer()
    assert one.order[-1] == "client got it"
    assert not one.is_over()
    one.candidate.answer()
    assert one.outcomes == {"equal": 1}
    assert one.is_over()
    assert len(one.responses) == 1


@pytest.mark.parametrize(("step", "waits"), [("add", False), ("advance", False), ("advance", True), ("left", False)])
async def test_a_fault_of_the_queue_fails_no_request_and_ends_the_mirroring(
    step: str, waits: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    one = Shadowed()
    if waits:
        one.stable.statistics.accepted()
        one.send("waits")

    def fail(*_: object) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr(ShadowQueue, step, fail)
    if not waits:
        one.send()
    one.stable.answer()
    if one.candidate.requests:
        one.candidate.answer()
    assert len(one.responses) == 1
    assert one.is_over()
    mirrored = len(one.candidate.requests)
    one.send("later")
    one.stable.answer(at=1)
    assert (len(one.responses), len(one.candidate.requests)) == (2, mirrored)
    assert "no further requests of model 'model' are copied" in caplog.text


async def test_a_copy_has_the_lowest_priority_no_timeout_and_the_same_tensors() -> None:
    one = Shadowed()
    one.send(priority=3, timeout_us=5, requested_outputs=("Y",), parameters={"a": 1})
    original, copy = one.stable.requests[0][0], one.candidate.requests[0][0]
    assert (copy.is_shadow, copy.timeout_us) == (True, 0)
    assert (copy.requested_outputs, copy.parameters) == (("Y",), {"a": 1})
    assert (original.priority, original.timeout_us) == (3, 5)
    assert copy.inputs == original.inputs
    assert not original.inputs["X"].array.flags.writeable, "a model that writes takes a copy"


async def test_requests_of_one_template_are_mirrored_by_one_template_and_their_bytes() -> None:
    one = Shadowed()
    like = InferRequest("model", {"X": Tensor("X", "FP32", np.ones((1, 1), np.float32))})
    template = RequestTemplate(like)
    bodies = [np.full(1, value, np.float32).tobytes() for value in (1, 2)]
    for body in bodies:
        writable = memoryview(bytearray(body))
        request = template.request("", [writable])
        one.mirror.submit(request, one.responses.append)
    assert [request.template for request, _, _ in one.stable.requests] == [template, template]
    mirrored = [request for request, _, _ in one.candidate.requests]
    assert mirrored[0].template is mirrored[1].template is not None
    assert [bytes(data) for copy in mirrored for data in copy.raw or ()] == bodies
    assert all(data.readonly for copy in mirrored for data in copy.raw or () if isinstance(data, memoryview))


async def test_a_request_without_an_id_has_a_copy_with_one_that_the_log_explains(
    caplog: pytest.LogCaptureFixture,
) -> None:
    one = Shadowed()
    with caplog.at_level(logging.WARNING, "argosy.shadow"):
        one.send("")
        one.stable.answer(1.0)
        one.candidate.answer(3.5)
    assert one.stable.requests[0][0].id == ""
    (example,) = one.statistics.outputs["Y"].examples
    assert example.request_id == one.candidate.requests[0][0].id
    assert example.request_id.startswith("shadow-")
    (message,) = [record.getMessage() for record in caplog.records]
    assert example.request_id in message
    assert "X FP32[1, 1]; sha256" in message
    assert "by 2.5 at most" in message


async def test_the_worst_answers_are_the_examples() -> None:
    one = Shadowed(tolerances=(OutputTolerance("Y", absolute=0.5),), max_in_flight=100)
    for number in range(10):
        one.send(f"r{number}")
        one.stable.answer(0.0, at=number)
        one.candidate.answer(number * 0.25, at=number)
    assert one.outcomes == {"equal": 3, "different": 7}
    output = one.statistics.outputs["Y"]
    assert (output.different, output.largest) == (7, 2.25)
    assert [example.request_id for example in output.examples] == ["r9", "r8", "r7", "r6", "r5"]
    assert len(output.examples) == MOST_EXAMPLES


async def test_an_id_that_is_used_again_has_one_example_the_worst() -> None:
    one = Shadowed()
    for at, value in enumerate((2.0, 5.0, 3.0)):
        one.send("same")
        one.stable.answer(0.0, at=at)
        one.candidate.answer(value, at=at)
    assert [(example.request_id, example.difference.size) for example in one.statistics.outputs["Y"].examples] == [
        ("same", 5.0)
    ]


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (internal("the model is broken"), "BACKEND"),
        (internal("no memory", FailureReason.OUT_OF_MEMORY), "OUT_OF_MEMORY"),
        (invalid("unexpected inference output"), "INVALID"),
        (ServingError(internal("").kind, "of the model itself", None), "ERROR"),
    ],
)
async def test_failures_of_a_candidate_have_their_reason(error: ServingError, reason: str) -> None:
    one = Shadowed()
    one.send()
    one.stable.answer()
    one.candidate.fail(error)
    assert one.outcomes == {"failed": 1}
    assert {name for name, count in one.statistics.failures.items() if count} == {reason}
    assert one.is_over()


@pytest.mark.parametrize("refusal", [invalid("it takes no X"), RuntimeError("a bug")])
async def test_a_candidate_that_refuses_a_copy_has_failed_and_the_client_knows_nothing(refusal: Exception) -> None:
    one = Shadowed()
    one.candidate.refusal = refusal
    one.send()
    one.stable.answer()
    assert [response.error for response in one.responses] == [None]
    assert one.outcomes == {"failed": 1}
    assert one.is_over()


async def test_a_candidate_that_hangs_is_left_and_its_slot_is_free() -> None:
    one = Shadowed(max_in_flight=1)
    one.send("a")
    one.stable.answer()
    one.send("b")
    assert len(one.candidate.requests) == 1, "one copy at a time"
    await one.clock.pass_time(31 * SECOND)
    assert one.outcomes == {"failed": 1, "skipped": 1}
    assert (one.statistics.failures["TIMEOUT"], one.statistics.obstacles[Obstacle.IN_FLIGHT]) == (1, 1)
    assert one.candidate.requests[0][2].calls == ["cancel"]
    assert one.is_over()
    one.candidate.answer()
    assert one.outcomes == {"failed": 1, "skipped": 1}, "an answer that comes later counts no more"


async def test_a_slow_stable_version_gives_the_candidate_more_time() -> None:
    one = Shadowed()
    one.send()
    await one.clock.pass_time(10 * SECOND)
    one.stable.answer()
    await one.clock.pass_time(129 * SECOND)
    one.candidate.answer()
    assert one.outcomes == {"equal": 1}


async def test_what_a_client_cancels_is_withdrawn() -> None:
    one = Shadowed()
    one.send().cancel()
    assert one.stable.requests[0][2].calls == ["cancel"]
    one.stable.fail(cancelled())
    assert one.candidate.requests[0][2].calls == ["cancel"]
    assert one.outcomes == {"canceled": 1}
    assert one.is_over()


async def test_the_end_of_the_shadow_withdraws_what_is_mirrored_and_no_request() -> None:
    one = Shadowed()
    one.send("a")
    one.send("b")
    one.mirror.close()
    assert [calls.calls for _, _, calls in one.candidate.requests] == [["cancel"], ["cancel"]]
    assert one.is_over()
    one.stable.answer()
    one.stable.answer(at=1)
    one.send("c")
    assert (len(one.responses), len(one.candidate.requests), one.outcomes) == (2, 2, {"canceled": 2})


async def test_a_request_that_the_stable_version_refuses_is_not_copied() -> None:
    one = Shadowed()
    one.stable.refusal = invalid("wrong")
    with pytest.raises(ServingError, match="wrong"):
        one.send()
    assert one.candidate.requests == []
    assert one.is_over()


@pytest.mark.parametrize(("error", "outcome"), [(invalid("wrong"), "equal"), (internal("broken"), "uncompared")])
async def test_where_the_stable_version_fails_only_the_same_error_is_an_answer(
    error: ServingError, outcome: str
) -> None:
    one = Shadowed()
    one.send()
    one.stable.fail(error)
    if outcome == "equal":
        one.candidate.fail(invalid("wrong, too"))
    else:
        one.candidate.answer()
    assert one.outcomes == {outcome: 1}


async def test_a_client_that_cannot_take_its_answer_leaves_the_comparison_alone() -> None:
    one = Shadowed()

    def deliver(_response: InferResponse) -> None:
        raise ConnectionError("gone")

    request = InferRequest("model", {"X": Tensor("X", "FP32", np.ones((1, 1), np.float32))})
    one.mirror.submit(request, deliver)
    with pytest.raises(ConnectionError):
        one.stable.answer()
    one.candidate.answer()
    assert one.outcomes == {"equal": 1}


async def test_a_front_end_that_changes_its_response_changes_nothing_of_the_comparison() -> None:
    one = Shadowed()

    def deliver(response: InferResponse) -> None:
        response.outputs = []

    request = InferRequest("model", {"X": Tensor("X", "FP32", np.ones((1, 1), np.float32))})
    one.mirror.submit(request, deliver)
    one.stable.answer()
    one.candidate.answer()
    assert one.outcomes == {"equal": 1}


async def test_streams_are_compared_response_by_response() -> None:
    one = Shadowed()
    one.send()
    for value in (1.0, 2.0):
        one.candidate.answer(value, final=False)
    one.candidate.requests[0][1](InferResponse())
    for value in (1.0, 3.0):
        one.stable.answer(value, final=False)
    one.stable.requests[0][1](InferResponse())
    assert len(one.responses) == 3
    assert one.outcomes == {"different": 1}
    assert one.statistics.outputs["Y"].examples[0].difference.size == 1.0


async def test_more_responses_than_memory_allows_are_not_compared() -> None:
    one = Shadowed(limit=1000)
    one.send("a")
    for _ in range(3):
        one.stable.answer(final=False)
        one.candidate.answer(final=False)
    one.stable.requests[0][1](InferResponse())
    one.candidate.requests[0][1](InferResponse())
    assert (one.outcomes, one.statistics.obstacles[Obstacle.MEMORY]) == ({"uncompared": 1}, 1)
    assert sum(one.statistics.candidate.counts) == 1, "durations are measured all the same"
    assert one.is_over()


async def test_strings_that_are_not_encoded_take_memory_too() -> None:
    one = Shadowed(limit=10_000)
    one.send()
    for version in (one.stable, one.candidate):
        strings = np.full(1000, b"text", np.object_)
        version.requests[0][1](InferResponse(outputs=[Tensor("Y", "BYTES", strings)]))
    assert (one.outcomes, one.statistics.obstacles[Obstacle.MEMORY]) == ({"uncompared": 1}, 1)


async def test_a_request_that_is_too_large_is_skipped() -> None:
    one = Shadowed(limit=3)
    one.send()
    assert (one.outcomes, one.statistics.obstacles[Obstacle.MEMORY]) == ({"skipped": 1}, 1)
    assert one.is_over()


async def test_nothing_is_copied_to_a_candidate_that_cannot_answer() -> None:
    one = Shadowed()
    one.candidate.ready = False
    one.send()
    assert one.candidate.requests == []
    assert (one.outcomes, one.statistics.obstacles[Obstacle.NOT_READY]) == ({"skipped": 1}, 1)


async def test_a_sequence_of_which_a_request_was_skipped_is_not_copied_any_more() -> None:
    one = Shadowed(max_in_flight=2)
    one.send("s1", sequence_id=7, sequence_start=True)
    one.send("s2", sequence_id=7)
    one.send("s3", sequence_id=7)
    for at in (0, 1):
        one.stable.answer(at=at)
        one.candidate.answer(at=at)
    one.send("s4", sequence_id=7, sequence_end=True)
    assert [request.id for request, _, _ in one.candidate.requests] == ["s1", "s2"]
    assert one.outcomes == {"equal": 2, "skipped": 1}


async def test_durations_of_both_sides_are_of_the_same_requests() -> None:
    one = Shadowed()
    one.send()
    await one.clock.pass_time(SECOND)
    one.stable.answer()
    await one.clock.pass_time(2 * SECOND)
    one.candidate.answer()
    assert (one.statistics.stable.ns, one.statistics.candidate.ns) == (SECOND, 3 * SECOND)
    one.send()
    one.stable.answer(at=1)
    one.candidate.fail(internal("broken"), at=1)
    assert sum(one.statistics.stable.counts) == 1


async def test_large_answers_are_compared_on_a_thread_and_hold_their_slot_until_then() -> None:
    one = Shadowed(limit=1 << 24)
    one.send()
    for version in (one.stable, one.candidate):
        outputs = [Tensor("Y", "FP32", np.full((1, 1 << 18), version.version, np.float32))]
        version.requests[0][1](InferResponse(outputs=outputs))
    assert one.mirror.in_flight == 1
    await one.work.finished()
    assert one.outcomes == {"different": 1}
    assert one.statistics.outputs["Y"].examples[0].difference.kind is DifferenceKind.VALUE
    assert one.is_over()
    one.work.close()


async def test_a_request_drawn_at_random_is_sent_and_not_compared() -> None:
    one = Shadowed()
    config = text_format.Parse(
        """name: "model" parameters { key: "chat" value { string_value: '{"prompt": "X", "text": "Y"}' } }""",
        ModelConfig(),
    )
    one.stable.config = config
    one.mirror = Mirror(Shadow(2, MILLIONTHS), one.stable, one.candidate, one.work, one.clock)
    one.send()
    one.stable.answer()
    one.candidate.answer(2.0)
    assert (one.outcomes, one.statistics.obstacles[Obstacle.SAMPLED]) == ({"uncompared": 1}, 1)


async def test_every_chosen_request_has_exactly_one_outcome() -> None:
    one = Shadowed(share=MILLIONTHS // 4, max_in_flight=2)
    for number in range(40):
        one.send(f"r{number}")
        one.stable.answer(at=number)
    for at in range(len(one.candidate.requests)):
        one.candidate.answer(at=at)
    assert sum(one.statistics.outcomes.values()) == 10
    assert one.statistics.outcomes[ShadowOutcome.SKIPPED] == 8


async def test_a_request_that_cannot_be_copied_is_answered_and_keeps_no_memory(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(_self: ShadowRequests, _request: InferRequest) -> InferRequest:
        raise ValueError("not to be copied")

    one = Shadowed()
    with monkeypatch.context() as failing, caplog.at_level(logging.CRITICAL, "argosy.shadow"):
        failing.setattr(ShadowRequests, "copy", fail)
        one.send()
    one.stable.answer()
    assert len(one.responses) == 1
    assert one.is_over()


def test_a_copy_has_the_sequence_of_its_request() -> None:
    array = np.zeros(1, np.float32)
    template, shadow = RequestTemplate(InferRequest("m", {"A": Tensor("A", "FP32", array)})), ShadowRequests()
    made = []
    for sequence in ((3, True, False), (4, False, True)):
        request = template.request("", [array.tobytes()])
        request.join(*sequence)
        made.append(shadow.copy(request))
    assert [(copy.sequence_id, copy.sequence_start, copy.sequence_end) for copy in made] == [
        (3, True, False),
        (4, False, True),
    ]
