"""The results of a model's code for a batch become responses."""

from typing import Any

import numpy as np
import pytest
from tests.runtime.backends.python.sources import ECHO, request

from argosy_runtime.errors import ErrorKind


def test_every_request_of_a_batch_is_answered_in_its_order(loaded: Any, responder: Any) -> None:
    times = loaded(ECHO).execute([request(1, id="a"), request(5, id="b")], responder)
    assert times is not None
    assert times.compute_infer_ns > 0
    for index, (expected, name) in enumerate([(2.0, "a"), (6.0, "b")]):
        response = responder.only(index)
        assert (response.id, response.model_version, response.parameters) == (name, "1", {"k": 1})
        assert [output.name for output in response.outputs] == ["OUT", "TWICE"]
        assert response.outputs[0].datatype == "FP32"
        np.testing.assert_array_equal(response.outputs[0].array, [[expected]])


def test_only_requested_outputs_are_sent(loaded: Any, responder: Any) -> None:
    loaded(ECHO).execute([request(requested_outputs=("TWICE",))], responder)
    assert [output.name for output in responder.only().outputs] == ["TWICE"]


def test_an_output_the_configuration_does_not_have_is_dropped(loaded: Any, responder: Any) -> None:
    loaded(ECHO.replace('"TWICE"', '"STRAY"')).execute([request()], responder)
    assert [output.name for output in responder.only().outputs] == ["OUT"]


def test_an_exception_fails_the_batch_with_the_models_own_frames(loaded: Any, responder: Any, host: Any) -> None:
    instance = loaded(
        """
        class TritonPythonModel:
            def execute(self, requests):
                return self.inner()
            def inner(self):
                raise ValueError("no such thing")
        """
    )
    instance.execute([request(), request()], responder)
    for index in (0, 1):
        error = responder.only(index).error
        assert error.kind is ErrorKind.INTERNAL
        head, _, frames = error.message.partition("\n\nAt:\n")
        assert head == ("Failed to process the request(s) for model 'm_0', message: ValueError: no such thing")
        assert [line.rpartition(": ")[2] for line in frames.splitlines()] == ["inner", "execute"]
        assert "model.py(6)" in frames
    assert host.lines[-1][0] == "error"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (
            "return []",
            (
                "message: Number of InferenceResponse objects do not match the number of InferenceRequest objects. "
                "InferenceRequest(s) size is:1, and InferenceResponse(s) size is:0\n"
            ),
        ),
        ("return tuple(requests)", "Expected a list in the execute return, found type '<class 'tuple'>'."),
        ("return [1]", "Expected an 'InferenceResponse' object in the execute function return list"),
        (
            "return [pb.InferenceResponse([None])]",
            "Output tensor for inference response should not be empty.",
        ),
        ("requests[0].exec()", "InferenceResponse(s) size is"),
    ],
)
def test_a_wrong_return_is_named(loaded: Any, responder: Any, body: str, expected: str) -> None:
    source = f"""
    import triton_python_backend_utils as pb
    class TritonPythonModel:
        def execute(self, requests):
            {body}
            return []
    """
    loaded(source).execute([request()], responder)
    assert expected in responder.only().error.message


def test_a_model_without_execute_is_reported(loaded: Any, responder: Any) -> None:
    loaded("class TritonPythonModel: pass").execute([request()], responder)
    assert "does not implement `execute` method." in responder.only().error.message


def test_an_error_on_one_response_leaves_the_others(loaded: Any, responder: Any) -> None:
    source = """
    import triton_python_backend_utils as pb
    class TritonPythonModel:
        def execute(self, requests):
            bad = pb.InferenceResponse(error=pb.TritonError("gone", pb.TritonError.NOT_FOUND))
            return [bad, pb.InferenceResponse([pb.Tensor("OUT", requests[1].inputs()[0].as_numpy())])]
    """
    loaded(source).execute([request(), request()], responder)
    assert (responder.only(0).error.kind, responder.only(0).error.message) == (ErrorKind.NOT_FOUND, "gone")
    assert responder.only(1).error is None


def test_a_coroutine_is_awaited(loaded: Any, responder: Any) -> None:
    source = ECHO.replace("def execute", "async def execute").replace(
        "responses = []", "import asyncio; await asyncio.sleep(0); responses = []"
    )
    assert loaded(source).execute([request(1)], responder) is not None
    np.testing.assert_array_equal(responder.only().outputs[0].array, [[2.0]])
