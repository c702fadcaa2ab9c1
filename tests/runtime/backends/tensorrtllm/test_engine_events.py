"""Requests that are cancelled, fail, or lose their engine; what the engine reports of itself."""

from typing import Any

import pytest
from tests.runtime.backends.language_model import output

from argosy_runtime.backends.generation.answers import Answer
from argosy_runtime.errors import ErrorKind

from .conftest import Load
from .test_generating import tokens_request

WAITS, FAILS, ENDS = 1, 2, 3


def test_a_request_whose_client_has_gone_is_aborted(load: Load, responder: Any, calls: Any) -> None:
    instance = load()
    responder.cancelled.add(0)
    instance.execute([tokens_request(WAITS, max_tokens=4), tokens_request(10, max_tokens=1)], responder)
    responder.wait_for_final(0, 1)
    assert responder.only(0).error.kind is ErrorKind.CANCELLED
    assert output(responder.only(1)) == [11]
    assert [call["prompt"] for call in calls("abort")] in ([[WAITS]], [])


def test_a_request_that_fails_hinders_no_other(load: Load, responder: Any, host: Any) -> None:
    load().execute([tokens_request(FAILS, max_tokens=4), tokens_request(10, max_tokens=2)], responder)
    responder.wait_for_final(0, 1)
    assert responder.only(0).error.kind is ErrorKind.INTERNAL
    assert "the request failed" in responder.only(0).error.message
    assert output(responder.only(1)) == [11, 12]
    assert host.losses.empty()


def test_an_answer_that_fails_is_aborted_and_the_engine_goes_on(
    load: Load, responder: Any, host: Any, calls: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    instance = load()
    advance = Answer.advance

    def broken(answer: Answer, choice: int, step: Any) -> bool:
        monkeypatch.setattr(Answer, "advance", advance)
        raise RecursionError("too deep")

    monkeypatch.setattr(Answer, "advance", broken)
    instance.execute([tokens_request(10, max_tokens=4)], responder)
    responder.wait_for_final(0)
    assert responder.only(0).error.kind is ErrorKind.INTERNAL
    assert "too deep" in responder.only(0).error.message
    assert [call["prompt"] for call in calls("abort")] == [[10]]
    assert host.losses.empty()


def test_an_engine_that_ends_fails_its_requests_and_is_replaced(load: Load, responder: Any, host: Any) -> None:
    instance = load()
    instance.execute([tokens_request(WAITS, max_tokens=4), tokens_request(ENDS, max_tokens=4)], responder)
    lost = host.losses.get(timeout=30)
    responder.wait_for_final(0, 1)
    assert lost.kind is ErrorKind.UNAVAILABLE
    assert "device-side assert" in lost.message
    assert lost.device_error
    assert {responder.only(index).error.kind for index in (0, 1)} == {ErrorKind.UNAVAILABLE}
    instance.execute([tokens_request(10, max_tokens=1)], responder2 := type(responder)())
    responder2.wait_for_final(0)
    assert "no longer generates" in responder2.only(0).error.message


def test_an_unloaded_model_answers_what_it_has_begun_with_an_error(load: Load, responder: Any) -> None:
    instance = load()
    instance.execute([tokens_request(WAITS, max_tokens=4)], responder)
    instance.close()
    responder.wait_for_final(0)
    assert "is being unloaded" in responder.only(0).error.message
    instance.close = lambda: None


def test_a_client_that_reads_slowly_gets_fewer_and_larger_pieces(load: Load, responder: Any) -> None:
    responder.paused.add(0)
    load().execute([tokens_request(10, stream=True, max_tokens=5)], responder)
    responder.wait_for_final(0)
    assert [output(response) for response in responder.of(0)] == [[11, 12, 13, 14, 15]]


def test_the_engines_statistics_are_reported(load: Load, responder: Any, host: Any) -> None:
    reported = host.reported
    instance = load()
    instance.execute([tokens_request(10, 11, max_tokens=3), tokens_request(WAITS, max_tokens=3)], responder)
    responder.wait_for_final(0)
    states = [reported.get(timeout=30)]
    while states[-1].generated_tokens < 3:
        states.append(reported.get(timeout=30))
    state = states[-1]
    assert (state.waiting, state.running, state.cache, state.cache_tokens) == (2, 3, 0.25, 100 * 32)
    assert (state.prompt_tokens, state.generated_tokens, state.cached_tokens) == (3, 3, 1)
    # Each report has the times since the one before it.
    assert sum(sum(state.times.first_token.counts) for state in states) == 1
    assert sum(sum(state.times.answered.counts) for state in states) == 1
