"""Responses that a model sends by itself: when, from where, and what it may not."""

import threading
from typing import Any

import pytest
from tests.runtime.backends.python.sources import CONFIG, DECOUPLED, ECHO, THREAD, request

from argosy_runtime.errors import ErrorKind
from argosy_runtime.messages import InferResponse

SENDER = """
import threading
import triton_python_backend_utils as pb_utils
FINAL = pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL

def answer(request, value):
    data = request.inputs()[0].as_numpy() * 0 + value
    return pb_utils.InferenceResponse([pb_utils.Tensor("OUT", data)])

class TritonPythonModel:
    def execute(self, requests):
"""


def test_a_decoupled_model_sends_from_its_own_thread_after_execute(loaded: Any, responder: Any) -> None:
    source = (
        SENDER
        + """
        def work(request, sender):
            for value in range(3):
                sender.send(answer(request, value))
            sender.send(flags=FINAL)
        for request in requests:
            threading.Thread(target=work, args=(request, request.get_response_sender())).start()
    """
    )
    loaded(source, DECOUPLED).execute([request(), request()], responder)
    responder.wait_for_final(0, 1)
    for index in (0, 1):
        responses = responder.of(index)
        assert [response.final for response in responses] == [False, False, False, True]
        assert [float(response.outputs[0].array[0, 0]) for response in responses[:3]] == [0, 1, 2]
        assert responses[3].is_empty


def test_a_request_retained_for_later_has_no_times_yet(loaded: Any, responder: Any) -> None:
    source = (
        SENDER
        + """
        kept, self.kept = getattr(self, "kept", None), (requests[0], requests[0].get_response_sender())
        if kept is not None:
            kept[1].send(answer(kept[0], 1), FINAL)
    """
    )
    instance = loaded(source, DECOUPLED)
    assert instance.execute([request(id="first")], responder) is None
    assert responder.sent == []
    instance.execute([request(id="second")], responder)
    assert responder.only().id == "first"


def test_a_decoupled_coroutine_runs_in_the_background(loaded: Any, responder: Any) -> None:
    source = (
        SENDER.replace("    def execute", "    async def execute")
        + """
        import asyncio
        await asyncio.sleep(0)
        for request in requests:
            request.get_response_sender().send(answer(request, 4), FINAL)
    """
    )
    loaded(source, DECOUPLED).execute([request()], responder)
    responder.wait_for_final(0)
    assert responder.only().outputs[0].array[0, 0] == 4


def test_an_exception_in_a_background_coroutine_reaches_the_client(loaded: Any, responder: Any) -> None:
    source = (
        SENDER.replace("    def execute", "    async def execute")
        + """
        self.kept = [request.get_response_sender() for request in requests]
        self.kept[0].send(answer(requests[0], 1), FINAL)
        raise RuntimeError("later")
    """
    )
    loaded(source, DECOUPLED).execute([request(), request()], responder)
    responder.wait_for_final(0, 1)
    assert responder.only(0).error is None
    assert "RuntimeError: later" in responder.only(1).error.message


def test_a_decoupled_model_may_not_return_responses(loaded: Any, responder: Any) -> None:
    loaded(ECHO, DECOUPLED).execute([request()], responder)
    assert "is using the decoupled mode and the execute function must return None." in (responder.only().error.message)


def test_a_dropped_sender_answers_for_the_model(loaded: Any, responder: Any) -> None:
    source = (
        SENDER
        + """
        requests[0].get_response_sender().send(answer(requests[0], 1))
    """
    )
    loaded(source, DECOUPLED).execute([request(), request()], responder)
    responder.wait_for_final(0, 1)
    assert [response.is_empty for response in responder.of(0)] == [False, True]
    assert "released its request without sending a response" in responder.only(1).error.message


def test_a_sender_works_for_a_model_that_is_not_decoupled(loaded: Any, responder: Any) -> None:
    source = (
        SENDER
        + """
        sender = requests[0].get_response_sender()
        sender.send(answer(requests[0], 3))
        sender.send(flags=FINAL)
        return [None, answer(requests[1], 5)]
    """
    )
    assert loaded(source).execute([request(), request()], responder) is not None
    assert responder.only(0).outputs[0].array[0, 0] == 3
    assert responder.only(1).outputs[0].array[0, 0] == 5


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("s.send(flags=FINAL)", "Non-decoupled model cannot send complete final before sending a response."),
        ("s.send(a); s.send(a)", "Non-decoupled model cannot send more than one response."),
        ("s.send(a, flags=2)", "Unable to send response. Unsupported flag provided."),
        ("s.send()", "Inference Response object must be provided when the response flags is set to zero."),
    ],
)
def test_a_misused_sender_raises(loaded: Any, responder: Any, host: Any, body: str, expected: str) -> None:
    source = (
        SENDER
        + f"""
        s = requests[0].get_response_sender()
        a = answer(requests[0], 1)
        {body}
    """
    )
    loaded(source).execute([request()], responder)
    assert len(responder.of(0)) == 1
    assert expected in host.lines[-1][1]


def test_a_closed_sender_refuses(loaded: Any, responder: Any, host: Any) -> None:
    source = (
        SENDER
        + """
        s = requests[0].get_response_sender()
        s.send(flags=FINAL)
        s.send(answer(requests[0], 1))
    """
    )
    loaded(source, DECOUPLED).execute([request()], responder)
    assert responder.only().is_empty
    assert "Unable to send response. Response sender has been closed." in host.lines[-1][1]


def test_a_request_asking_to_come_again_goes_back(loaded: Any, responder: Any) -> None:
    source = (
        SENDER
        + """
        requests[0].set_release_flags(pb_utils.TRITONSERVER_REQUEST_RELEASE_RESCHEDULE)
        return [None]
    """
    )
    again: list[int] = []
    responder.reschedule = again.append
    loaded(source).execute([request()], responder)
    assert again == [0]
    assert responder.sent == []


def test_a_server_that_cannot_reschedule_says_so(loaded: Any, responder: Any) -> None:
    source = (
        SENDER
        + """
        requests[0].set_release_flags(pb_utils.TRITONSERVER_REQUEST_RELEASE_RESCHEDULE)
        return [None]
    """
    )
    loaded(source).execute([request()], responder)
    assert responder.only().error.kind is ErrorKind.UNSUPPORTED


class WaitingResponder:
    """Blocks the thread that sends a last response, between the call and its end."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner
        self.entered, self.go_on = threading.Event(), threading.Event()

    def send(self, index: int, response: InferResponse, wait: bool = True) -> None:
        self.entered.set()
        assert self.go_on.wait(30)
        self.inner.send(index, response, wait)

    def is_cancelled(self, index: int) -> bool:
        return False

    def is_paused(self, index: int) -> bool:
        return False


@pytest.mark.parametrize("config", [DECOUPLED, CONFIG + THREAD], ids=["decoupled", "one answer"])
def test_a_request_whose_last_response_is_on_its_way_is_not_answered_yet(
    loaded: Any, responder: Any, config: str
) -> None:
    """`execute` returns while a thread of the model's sends: the batch is not reported as answered."""
    source = (
        SENDER
        + """
        for request in requests:
            work = lambda r=request, s=request.get_response_sender(): s.send(answer(r, 4), FINAL)
            threading.Thread(target=work).start()
        self.entered.wait(30)
    """
    )
    instance = loaded(source, config)
    waiting = WaitingResponder(responder)
    instance._model.entered = waiting.entered
    assert instance.execute([request()], waiting) is None
    waiting.go_on.set()
    responder.wait_for_final(0)
    assert responder.only().outputs[0].array[0, 0] == 4
