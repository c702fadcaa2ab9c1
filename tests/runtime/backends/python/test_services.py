"""Services of the server for a model's code: other models, its log, metrics and repository."""

from typing import Any

import numpy as np
import pytest
from tests.runtime.backends.python.sources import request

from argosy_runtime.backends.contract import ActOnMetric, IsModelReady, LoadModel, MetricFamilySpec, UnloadModel
from argosy_runtime.backends.python.pb_utils.response import RETAINED_BYTES
from argosy_runtime.errors import ErrorKind, ServingError
from argosy_runtime.messages import InferResponse, Tensor

BLS = """
import triton_python_backend_utils as pb_utils
class TritonPythonModel:
    def {define}(self, requests):
        data = requests[0].inputs()[0]
        call = pb_utils.InferenceRequest(model_name="other", model_version=3, request_id="r", inputs=[data],
            requested_output_names=["OUT"], parameters={{"a": "b"}}, correlation_id=8, flags=1, timeout=5)
        {body}
"""


def test_a_model_calls_another(loaded: Any, responder: Any, host: Any) -> None:
    out = Tensor("OUT", "FP32", np.array([[9]], np.float32))
    host.answers = [InferResponse("other", "3", outputs=[out], parameters={"z": 2})]
    loaded(BLS.format(define="execute", body="return [call.exec()]")).execute([request(2)], responder)
    (sent,) = host.inferred
    assert (sent.model_name, sent.model_version, sent.id) == ("other", "3", "r")
    assert (sent.requested_outputs, sent.parameters) == (("OUT",), {"a": "b"})
    assert (sent.sequence_id, sent.sequence_start, sent.sequence_end, sent.timeout_us) == (8, True, False, 5)
    np.testing.assert_array_equal(sent.inputs["IN"].array, [[2.0]])
    assert responder.only().outputs[0].array[0, 0] == 9
    assert responder.only().parameters == {"z": 2}
    assert host.decoupled is False


def test_an_asynchronous_call_keeps_its_server(loaded: Any, responder: Any, host: Any) -> None:
    out = Tensor("OUT", "FP32", np.array([[9]], np.float32))
    host.answers = [InferResponse("other", "3", outputs=[out])]
    body = "return [await call.async_exec()]"
    loaded(BLS.format(define="execute", body=body).replace("def execute", "async def execute")).execute(
        [request()], responder
    )
    assert responder.only().outputs[0].array[0, 0] == 9


def test_an_error_of_the_called_model_is_on_the_response(loaded: Any, responder: Any, host: Any) -> None:
    host.answers = ServingError(ErrorKind.NOT_FOUND, "no model 'other'")
    body = "r = call.exec(); assert r.has_error(); return [r]"
    loaded(BLS.format(define="execute", body=body)).execute([request()], responder)
    error = responder.only().error
    assert (error.kind, error.message) == (
        ErrorKind.NOT_FOUND,
        "Model other - Error when running inference: no model 'other'",
    )
    assert error.reason is None, "an error that a model answers with is an answer"


def test_an_error_that_the_called_model_answers_keeps_its_words(loaded: Any, responder: Any, host: Any) -> None:
    host.answers = [InferResponse("other", "3", error=ServingError(ErrorKind.UNAVAILABLE, "its own words", None))]
    loaded(BLS.format(define="execute", body="return [call.exec()]")).execute([request()], responder)
    assert responder.only().error.message == "its own words"


def test_a_decoupled_call_iterates_and_starts_over(loaded: Any, responder: Any, host: Any) -> None:
    outs = [Tensor("OUT", "FP32", np.array([[n]], np.float32)) for n in (1, 2)]
    host.answers = [InferResponse("other", "3", outputs=[out], final=False) for out in outs]
    host.answers.append(InferResponse("other", "3"))
    body = """it = call.exec(decoupled=True)
        total = sum(r.output_tensors()[0].as_numpy() for r in it if r.output_tensors())
        again = sum(r.output_tensors()[0].as_numpy() for r in it if r.output_tensors())
        outputs = [pb_utils.Tensor("OUT", total), pb_utils.Tensor("TWICE", again)]
        return [pb_utils.InferenceResponse(outputs)]"""
    loaded(BLS.format(define="execute", body=body)).execute([request()], responder)
    assert [output.array[0, 0] for output in responder.only().outputs] == [3, 3]
    assert host.decoupled is True


def test_responses_that_no_one_will_read_are_cancelled(loaded: Any, responder: Any, host: Any) -> None:
    out = Tensor("OUT", "FP32", np.zeros((1, 1), np.float32))
    host.answers = [InferResponse("other", "3", outputs=[out], final=False)] * 9
    body = """it = call.exec(decoupled=True); next(it); del it
        return [pb_utils.InferenceResponse([])]"""
    loaded(BLS.format(define="execute", body=body)).execute([request()], responder)
    assert host.open[0].cancelled.wait(30)


def test_no_call_to_another_model_while_initializing(loaded: Any) -> None:
    body = "call.exec()"
    source = BLS.format(define="initialize", body=body).replace("requests[0].inputs()[0]", "None")
    source = source.replace("inputs=[data]", "inputs=[]")
    with pytest.raises(ServingError, match=r"BLS is only supported during the 'execute' function\."):
        loaded(source)


def test_log_metrics_and_repository_reach_the_server(loaded: Any, responder: Any, host: Any) -> None:
    source = """
    import triton_python_backend_utils as pb
    class TritonPythonModel:
        def initialize(self, args):
            pb.Logger.log_warn("careful"); pb.Logger.log("plain"); pb.Logger.log("v", pb.Logger.VERBOSE)
            family = pb.MetricFamily(name="n", description="d", kind=pb.MetricFamily.HISTOGRAM)
            self.family = family
            self.metric = family.Metric(labels={"l": 1}, buckets=[0.5, 1])
            self.metric.observe(0.25)
            assert self.metric.value() == 7
            pb.load_model("other", files={"file:1/model.py": b"x"}, config="{}")
            pb.unload_model("other", unload_dependents=True)
            assert pb.is_model_ready("other", "2")
        def finalize(self):
            del self.metric
    """
    instance = loaded(source)
    assert host.lines == [("warning", "careful"), ("info", "plain"), ("verbose", "v")]
    family = MetricFamilySpec("n", "d", "histogram", (0.5, 1.0))
    declared = MetricFamilySpec("n", "d", "histogram")
    assert host.calls == [
        ActOnMetric(declared, {}, "declare", 0.0),
        ActOnMetric(family, {"l": "1"}, "create", 0.0),
        ActOnMetric(family, {"l": "1"}, "observe", 0.25),
        ActOnMetric(family, {"l": "1"}, "value", 0.0),
        LoadModel("other", "{}", {"file:1/model.py": b"x"}),
        UnloadModel("other", True),
        IsModelReady("other", "2"),
    ]
    instance.close()
    assert ActOnMetric(family, {"l": "1"}, "remove", 0.0) in host.calls
    assert host.calls[-1] == ActOnMetric(declared, {}, "drop", 0.0)


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("load_model('o')", "Failed to load model: Failed to process the request for model 'm_0', message: refused"),
        ("load_model('o', files=[1])", "failed to load model 'o', files should be a dictionary"),
        (
            "unload_model('o')",
            "Failed to unload model: Failed to process the request for model 'm_0', message: refused",
        ),
        (
            "is_model_ready('o')",
            "Failed to check model readiness: Failed to process the request for model 'm_0', message: refused",
        ),
        ("is_model_ready('o', 'x')", "version should be an integral value > 0"),
        (
            "MetricFamily('n', 'd', pb.MetricFamily.COUNTER)",
            "Error when creating MetricFamily: Failed to process the request for model 'm_0', message: refused",
        ),
    ],
)
def test_what_the_server_refuses_is_an_exception(loaded: Any, host: Any, call: str, expected: str) -> None:
    host.refusal = ServingError(ErrorKind.UNAVAILABLE, "refused")
    source = f"""
    import triton_python_backend_utils as pb
    class TritonPythonModel:
        def initialize(self, args):
            pb.{call}
    """
    with pytest.raises(ServingError, match=expected) as raised:
        loaded(source)
    assert raised.value.message.startswith("TritonModelException: ")


def test_responses_that_are_many_bytes_are_not_retained(loaded: Any, responder: Any, host: Any) -> None:
    large = np.zeros((1, RETAINED_BYTES // 16), np.float32)
    host.answers = [InferResponse("other", "3", outputs=[Tensor("OUT", "FP32", large)], final=False) for _ in range(9)]
    host.answers.append(InferResponse("other", "3"))
    body = """it = call.exec(decoupled=True)
        count, most = 0, 0
        for response in it:
            count += bool(response.output_tensors())
            most = max(most, len(it._seen))
        assert (count, most) == (9, 4), (count, most)
        next(iter(it))"""
    instance = loaded(BLS.format(define="execute", body=body))
    instance.execute([request()], responder)
    assert "Responses of more than 4194304 bytes are not kept" in responder.only().error.message
