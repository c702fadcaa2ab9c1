"""The Python backend, seen from the server: what a model's code does becomes responses."""

import json
import sys
import textwrap
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from argosy_runtime.backends import python
from argosy_runtime.backends.contract import ActOnMetric, IsModelReady, LoadModel, MetricFamilySpec, UnloadModel
from argosy_runtime.errors import ErrorKind, ServingError
from argosy_runtime.messages import InferRequest, InferResponse, Tensor

CONFIG = """
name: "m" backend: "python" max_batch_size: 8
input { name: "IN" data_type: TYPE_FP32 dims: [ -1 ] }
output { name: "OUT" data_type: TYPE_FP32 dims: [ -1 ] }
output { name: "TWICE" data_type: TYPE_FP32 dims: [ -1 ] }
"""
THREAD = 'parameters { key: "ISOLATION" value { string_value: "thread" } }'
DECOUPLED = CONFIG + "model_transaction_policy { decoupled: true }" + THREAD

ECHO = """
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        responses = []
        for request in requests:
            data = pb_utils.get_input_tensor_by_name(request, "IN").as_numpy()
            outputs = [pb_utils.Tensor("OUT", data + 1), pb_utils.Tensor("TWICE", data * 2)]
            responses.append(pb_utils.InferenceResponse(outputs, parameters={"k": 1}))
        return responses
"""


def request(value: float = 1.0, **fields: Any) -> InferRequest:
    array = np.array([[value]], np.float32)
    return InferRequest("m", {"IN": Tensor("IN", "FP32", array)}, **fields)


@pytest.fixture
def loaded(model_folder: Callable[[str], Any], host: Any) -> Any:
    """Loads a model from its source; closes it afterwards."""
    instances = []

    def load(source: str, pbtxt: str = CONFIG + THREAD) -> Any:
        folder = model_folder(pbtxt)
        (folder.version_dir / "model.py").write_text(textwrap.dedent(source))
        instances.append(python.load(folder.spec(), host))
        return instances[-1]

    yield load
    for instance in instances:
        instance.close()


def test_every_request_of_a_batch_is_answered_in_its_place(loaded: Any, responder: Any) -> None:
    times = loaded(ECHO).execute([request(1, id="a"), request(5, id="b")], responder)
    assert times is not None
    assert times.compute_infer_ns >= 0
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


def test_a_model_without_execute_is_told_so(loaded: Any, responder: Any) -> None:
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


def test_initialize_is_told_everything_as_strings(loaded: Any, responder: Any) -> None:
    source = """
    import json, numpy as np, triton_python_backend_utils as pb
    class TritonPythonModel:
        def initialize(self, args):
            self.args = args
        def execute(self, requests):
            self.args["dir"] = pb.get_model_dir()
            text = np.array([json.dumps(self.args)], dtype=object)
            return [pb.InferenceResponse([pb.Tensor("OUT", text)]) for _ in requests]
    """
    instance = loaded(source)
    instance.execute([request()], responder)
    (output,) = responder.only().outputs
    assert (output.datatype, output.shape) == ("BYTES", (1,))
    args = json.loads(output.array[0])
    assert args.pop("dir").endswith("/m/1")
    assert args.pop("model_repository").endswith("/m")
    config = json.loads(args.pop("model_config"))
    assert config["input"][0]["dims"] == [-1]
    assert config["parameters"] == {"ISOLATION": {"string_value": "thread"}}
    assert args == {
        "model_instance_kind": "CPU",
        "model_instance_name": "m_0",
        "model_instance_device_id": "0",
        "model_version": "1",
        "model_name": "m",
    }


def test_a_request_shows_all_it_carries(loaded: Any, responder: Any) -> None:
    source = """
    import json, numpy as np, triton_python_backend_utils as pb
    class TritonPythonModel:
        def execute(self, requests):
            r = requests[0]
            seen = [r.request_id(), r.correlation_id(), r.flags(), r.timeout(), json.loads(r.parameters()),
                    r.requested_output_names(), r.is_cancelled(), r.trace().get_context()]
            return [pb.InferenceResponse([pb.Tensor("OUT", np.array([json.dumps(seen)], object))])]
    """
    given = request(
        id="x", sequence_id="s", sequence_start=True, sequence_end=True, timeout_us=9, parameters={"p": 1.5}
    )
    responder.cancelled.add(0)
    loaded(source).execute([given], responder)
    assert json.loads(responder.only().outputs[0].array[0]) == [
        "x", "s", 3, 9, {"p": 1.5}, ["OUT", "TWICE"], True, None,
    ]  # fmt: skip


def test_a_coroutine_is_awaited(loaded: Any, responder: Any) -> None:
    source = ECHO.replace("def execute", "async def execute").replace(
        "responses = []", "import asyncio; await asyncio.sleep(0); responses = []"
    )
    assert loaded(source).execute([request(1)], responder) is not None
    np.testing.assert_array_equal(responder.only().outputs[0].array, [[2.0]])


def test_two_models_in_one_interpreter_do_not_meet(
    model_folder: Callable[[str], Any], host: Any, responder: Any
) -> None:
    others = set(sys.modules)
    instances = []
    for name in ("first", "second"):
        folder = model_folder(CONFIG.replace('"m"', f'"{name}"') + THREAD)
        (folder.version_dir / "helper.py").write_text(f"NAME = {name!r}")
        (folder.version_dir / "model.py").write_text(
            "import numpy as np, triton_python_backend_utils as pb\n"
            "from .helper import NAME\n"
            "class TritonPythonModel:\n"
            "    def execute(self, requests):\n"
            "        text = np.array([NAME + pb.get_model_dir()], dtype=object)\n"
            "        return [pb.InferenceResponse([pb.Tensor('OUT', text)])]\n"
        )
        instances.append((python.load(folder.spec(), host), folder))
    before = list(sys.path)
    for index, (instance, folder) in enumerate(instances):
        instance.execute([request()], responder)
        assert responder.of(0)[index].outputs[0].array[0] == f"{folder.config.name}{folder.version_dir}".encode()
    assert sys.path == before
    for instance, _ in instances:
        instance.close()
    assert not [name for name in sys.modules.keys() - others if name.startswith("_argosy_model_")]


def test_finalize_is_called_once_and_its_error_only_logged(model_folder: Callable[[str], Any], host: Any) -> None:
    folder = model_folder(CONFIG + THREAD)
    (folder.version_dir / "model.py").write_text(
        "class TritonPythonModel:\n    def finalize(self):\n        raise OSError('late')\n"
    )
    python.load(folder.spec(), host).close()
    assert [line for line in host.lines if "OSError: late" in line[1]] == [("info", host.lines[-1][1])]


def test_is_ready_is_the_models_own_opinion(loaded: Any) -> None:
    assert loaded(ECHO).is_ready()
    source = ECHO + "\n    async def is_ready(self):\n        return False\n"
    assert not loaded(source, CONFIG.replace('"m"', '"n"') + THREAD).is_ready()
    source = ECHO + "\n    def is_ready(self):\n        return 1\n"
    with pytest.raises(ServingError, match=r"is_ready\(\) must return a boolean value"):
        loaded(source, CONFIG.replace('"m"', '"o"') + THREAD).is_ready()


# Response senders


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


def test_a_request_kept_for_later_has_no_times_yet(loaded: Any, responder: Any) -> None:
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


# Business logic scripting and the server's services


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


def test_responses_that_nobody_will_read_are_cancelled(loaded: Any, responder: Any, host: Any) -> None:
    host.answers = [InferResponse("other", "3", outputs=[Tensor("OUT", "FP32", np.zeros((1, 1), np.float32))])] * 9
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
    assert host.calls == [
        ActOnMetric(family, {"l": "1"}, "create", 0.0),
        ActOnMetric(family, {"l": "1"}, "observe", 0.25),
        ActOnMetric(family, {"l": "1"}, "value", 0.0),
        LoadModel("other", "{}", {"file:1/model.py": b"x"}),
        UnloadModel("other", True),
        IsModelReady("other", "2"),
    ]
    instance.close()
    assert host.calls[-1] == ActOnMetric(family, {"l": "1"}, "remove", 0.0)


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("load_model('o')", "Failed to load model: refused"),
        ("load_model('o', files=[1])", "failed to load model 'o', files should be a dictionary"),
        ("unload_model('o')", "Failed to unload model: refused"),
        ("is_model_ready('o')", "Failed to check model readiness: refused"),
        ("is_model_ready('o', 'x')", "version should be an integral value > 0"),
        ("MetricFamily('n', 'd', pb.MetricFamily.COUNTER).Metric()", "Error when creating Metric: refused"),
        ("MetricFamily('n', 'd', pb.MetricFamily.GAUGE).Metric(buckets=[1])", "Unexpected buckets found."),
        ("MetricFamily('n', 'd', pb.MetricFamily.HISTOGRAM).Metric()", "Missing required buckets."),
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


# Loading


def test_a_missing_file_is_named(model_folder: Callable[[str], Any], host: Any) -> None:
    folder = model_folder(CONFIG)
    for act in (
        lambda: python.load(folder.spec(), host),
        lambda: python.complete_config(folder.model_dir, folder.version_dir, folder.config),
    ):
        with pytest.raises(ServingError, match=r"Python model file not found in '.*/m/1/model\.py'") as raised:
            act()
        assert raised.value.kind is ErrorKind.NOT_FOUND


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import nothing_like_this", "ModuleNotFoundError: No module named 'nothing_like_this'"),
        ("x = (", r"SyntaxError"),
        ("class Other: pass", "does not define the class 'TritonPythonModel'"),
        (
            "class TritonPythonModel:\n    def initialize(self, args):\n        1 / 0",
            r"ZeroDivisionError: division by zero\n\nAt:\n  .*model\.py\(3\): initialize",
        ),
    ],
)
def test_a_model_that_cannot_load_says_why(loaded: Any, source: str, expected: str) -> None:
    with pytest.raises(ServingError, match=expected):
        loaded(source)


def test_a_reload_within_the_same_second_sees_the_new_source(loaded: Any, host: Any, responder: Any) -> None:
    first = loaded(ECHO)
    folder = first._spec.version_dir
    (folder / "model.py").write_text(ECHO.replace("data + 1", "data + 5"))
    second = python.load(first._spec, host)
    second.execute([request(1)], responder)
    assert responder.only().outputs[0].array[0, 0] == 6
    second.close()


def test_another_file_name(model_folder: Callable[[str], Any], host: Any, responder: Any) -> None:
    folder = model_folder(CONFIG + THREAD + 'default_model_filename: "my-model.v2.py"')
    (folder.version_dir / "my-model.v2.py").write_text(ECHO)
    instance = python.load(folder.spec(), host)
    instance.execute([request()], responder)
    assert responder.only().error is None
    instance.close()


def test_isolation_must_be_known(model_folder: Callable[[str], Any], host: Any) -> None:
    folder = model_folder(CONFIG + THREAD.replace("thread", "vm"))
    (folder.version_dir / "model.py").write_text(ECHO)
    with pytest.raises(ServingError, match="ISOLATION is 'vm'"):
        python.load(folder.spec(), host)


def test_a_process_of_its_own_imports_by_name(
    model_folder: Callable[[str], Any], host: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    folder = model_folder(CONFIG)
    (folder.version_dir / "beside_the_model.py").write_text("VALUE = 1")
    (folder.version_dir / "model.py").write_text("import beside_the_model\nclass TritonPythonModel:\n    pass\n")
    python.load(folder.spec(), host).close()
    assert str(folder.version_dir) in sys.path
    del sys.modules["beside_the_model"]


def test_an_environment_of_another_python_is_refused(model_folder: Callable[[str], Any], host: Any) -> None:
    env = 'parameters { key: "EXECUTION_ENV_PATH" value { string_value: "$$TRITON_MODEL_DIRECTORY/env" } }'
    folder = model_folder(CONFIG + env)
    (folder.version_dir / "model.py").write_text(ECHO)
    with pytest.raises(ServingError, match=r"EXECUTION_ENV_PATH '.*/m/env' does not exist"):
        python.load(folder.spec(), host)
    (folder.model_dir / "env" / "lib" / "python3.4").mkdir(parents=True)
    with pytest.raises(ServingError, match=r"holds python3\.4, but this server runs python3"):
        python.load(folder.spec(), host)


def test_an_environment_is_importable(
    model_folder: Callable[[str], Any], host: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    env = 'parameters { key: "EXECUTION_ENV_PATH" value { string_value: "$$TRITON_MODEL_DIRECTORY/env" } }'
    folder = model_folder(CONFIG + env)
    running = f"python{sys.version_info.major}.{sys.version_info.minor}"
    packages = folder.model_dir / "env" / "lib" / running / "site-packages"
    packages.mkdir(parents=True)
    (packages / "brought_along.py").write_text("VALUE = 1")
    (folder.version_dir / "model.py").write_text("import brought_along\n" + ECHO)
    python.load(folder.spec(), host).close()
    del sys.modules["brought_along"]


# Completing the configuration


def completed(model_folder: Callable[[str], Any], body: str, pbtxt: str = 'name: "m" backend: "python"') -> Any:
    folder = model_folder(pbtxt)
    lines = "\n".join(f"        {line}" for line in body.splitlines())
    (folder.version_dir / "model.py").write_text(
        "class TritonPythonModel:\n    @staticmethod\n    def auto_complete_config(c):\n" + lines
    )
    return python.complete_config(folder.model_dir, folder.version_dir, folder.config)


def test_a_model_completes_its_configuration(model_folder: Callable[[str], Any]) -> None:
    config = completed(
        model_folder,
        """c.set_max_batch_size(4)
c.set_dynamic_batching()
c.add_input({"name": "A", "data_type": "TYPE_FP32", "dims": [3, -1], "optional": True})
c.add_output({"name": "B", "data_type": "TYPE_STRING", "dims": [1]})
c.set_model_transaction_policy({"decoupled": True})
return c""",
    )
    assert (config.max_batch_size, config.HasField("dynamic_batching")) == (4, True)
    assert (config.input[0].name, list(config.input[0].dims), config.input[0].optional) == (
        "A",
        [3, -1],
        True,
    )
    assert (config.output[0].name, config.output[0].data_type) == ("B", 13)
    assert config.model_transaction_policy.decoupled
    assert config.backend == "python"


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("set_max_batch_size(2)", "configuration specified max_batch_size 8, but in auto-complete-config"),
        (
            "add_input({'name': 'IN', 'data_type': 'TYPE_FP32', 'dims': [2]})",
            "the model expects dims \\[2\\]",
        ),
        (
            "add_input({'name': 'IN', 'data_type': 'TYPE_INT8', 'dims': [-1]})",
            "expects datatype TYPE_FP32 for input 'IN', model provides TYPE_INT8",
        ),
        ("add_output({'name': 'X', 'dims': [1]})", "output 'X' in .* is missing 'data_type' property."),
        ("add_output({'dims': [1]})", "output in auto-complete-config .* is missing 'name' property."),
        (
            "add_input({'name': 'X', 'shape': 1})",
            "property other than 'name', 'data_type', 'dims' and 'optional'.",
        ),
        ("set_model_transaction_policy({'x': 1})", "contains property other than 'decoupled'."),
        ("add_input({'name': 'X', 'data_type': 'TYPE_NO', 'dims': [1]})", "TYPE_NO"),
    ],
)
def test_a_contradiction_is_named(model_folder: Callable[[str], Any], call: str, expected: str) -> None:
    with pytest.raises(ServingError, match=expected) as raised:
        completed(model_folder, f"c.{call}\nreturn c", CONFIG)
    assert raised.value.kind is ErrorKind.INVALID_ARG


def test_auto_complete_must_return_the_configuration(model_folder: Callable[[str], Any]) -> None:
    with pytest.raises(ServingError, match=r"must return a valid pb\.ModelConfig object\."):
        completed(model_folder, "return None")


def test_a_model_without_auto_complete_keeps_its_configuration(model_folder: Callable[[str], Any]) -> None:
    folder = model_folder(CONFIG)
    (folder.version_dir / "model.py").write_text(ECHO)
    assert python.complete_config(folder.model_dir, folder.version_dir, folder.config) == folder.config
