"""The gRPC front end with the real clients: statuses, streams, order, cancellation, drain."""

# Messages stand whole on their line, so that they can be searched for.
# ruff: noqa: E501

import asyncio
import logging
import queue
from collections.abc import AsyncIterator, Iterator
from typing import Any

import grpc
import numpy as np
import pytest
import tritonclient.grpc as triton
import tritonclient.grpc.aio as triton_aio
from grpc_health.v1 import health_pb2, health_pb2_grpc
from tests.runtime.frontends.conftest import Running, client_regions
from tritonclient.grpc import service_pb2 as pb
from tritonclient.grpc import service_pb2_grpc
from tritonclient.utils import InferenceServerException

from argosy_runtime.errors import ServingError
from argosy_runtime.frontends.grpc import listener as grpc_frontend


@pytest.fixture
def client(running: Running) -> Iterator[triton.InferenceServerClient]:
    with triton.InferenceServerClient(f"127.0.0.1:{running.grpc}") as grpc_client:
        yield grpc_client


@pytest.fixture
def stub(running: Running) -> Iterator[Any]:
    with grpc.insecure_channel(f"127.0.0.1:{running.grpc}") as channel:
        yield service_pb2_grpc.GRPCInferenceServiceStub(channel)


def message(model: str, datatype: str, data: bytes, request_id: str = "", version: str = "") -> pb.ModelInferRequest:
    request = pb.ModelInferRequest(model_name=model, id=request_id, model_version=version)
    request.inputs.add(name="IN", datatype=datatype, shape=[len(data) // 4])
    request.raw_input_contents.append(data)
    return request


def test_management(client: triton.InferenceServerClient, running: Running) -> None:
    assert client.is_server_live()
    assert client.is_server_ready()
    assert client.is_model_ready("echo")
    assert not client.is_model_ready("echo", "9")
    assert client.get_server_metadata().name == "argosy"
    assert client.get_model_metadata("echo").inputs[0].name == "IN"
    assert client.get_model_config("echo").config.max_batch_size == 8
    assert client.get_inference_statistics("echo").model_stats[0].name == "echo"
    assert [model.name for model in client.get_model_repository_index().models] == ["echo", "never"]
    client.load_model("m", config="{}", files={"file:1/model.onnx": b"onnx"})
    client.unload_model("m", unload_dependents=True)
    assert running.plane.loaded == [("m", "{}", {"file:1/model.onnx": b"onnx"})]
    assert running.plane.unloaded == [("m", True)]


def test_infer(client: triton.InferenceServerClient, running: Running) -> None:
    numbers = np.array([1, -2], np.int32)
    strings = np.array([b"\xff\x00", b""], np.object_)
    inputs = [triton.InferInput("A", [2], "INT32"), triton.InferInput("B", [2], "BYTES")]
    inputs[0].set_data_from_numpy(numbers)
    inputs[1].set_data_from_numpy(strings)
    result = client.infer(
        "any", inputs, request_id="r", sequence_id="s", sequence_end=True, priority=3, timeout=9,
        parameters={"mine": 1.5}, headers={"fwd-me": "on"},
    )  # fmt: skip
    np.testing.assert_array_equal(result.as_numpy("OUT_A"), numbers)
    assert list(result.as_numpy("OUT_B")) == list(strings)
    assert (result.get_response().id, result.get_response().model_version) == ("r", "1")
    seen = running.plane.requests[0]
    assert (seen.sequence_id, seen.sequence_start, seen.sequence_end) == ("s", False, True)
    assert (seen.priority, seen.timeout_us) == (3, 9)
    assert seen.parameters == {"mine": 1.5, "fwd-me": "on"}


@pytest.mark.parametrize("streams", [False, True])
def test_forwarded_headers_are_parameters_of_their_own_request_alone(
    client: triton.InferenceServerClient, running: Running, streams: bool
) -> None:
    sent = triton.InferInput("A", [2], "INT32")
    sent.set_data_from_numpy(np.array([1, -2], np.int32))

    def ask(headers: dict[str, str]) -> None:
        if not streams:
            client.infer("any", [sent], parameters={"mine": 1, "streams": streams}, headers=headers)
            return
        answers: queue.Queue[object] = queue.Queue()
        client.start_stream(lambda result, error: answers.put(error or result), headers=headers)
        client.async_stream_infer("any", [sent], parameters={"mine": 1, "streams": streams})
        assert isinstance(answers.get(timeout=60), triton.InferResult)
        client.stop_stream()

    forwarded = [{"fwd-me": "secret"}, {"fwd-me": "secret"}, {}, {"fwd-other": "2"}, {}, {}]
    for headers in forwarded:
        ask(headers)
    own = [dict(request.parameters) for request in running.plane.requests]
    assert own == [{"mine": 1, "streams": streams, **headers} for headers in forwarded]


def test_classification(client: triton.InferenceServerClient) -> None:
    sent = triton.InferInput("IN", [1, 3], "FP32")
    sent.set_data_from_numpy(np.array([[0.5, 2, 1]], np.float32))
    outputs = [triton.InferRequestedOutput("OUT", class_count=2)]
    result = client.infer("echo", [sent], outputs=outputs)
    assert result.as_numpy("OUT").tolist() == [[b"2.000000:1:dog", b"1.000000:2"]]


def log_change(name: str, **value: Any) -> pb.LogSettingsRequest:
    return pb.LogSettingsRequest(settings={name: pb.LogSettingsRequest.SettingValue(**value)})


def trace_change(name: str, *values: str) -> pb.TraceSettingRequest:
    return pb.TraceSettingRequest(settings={name: pb.TraceSettingRequest.SettingValue(value=values)})


def test_trace_settings_change_and_are_reported(stub: Any) -> None:
    changed = stub.TraceSetting(trace_change("trace_rate", "7")).settings
    assert {name: list(value.value) for name, value in changed.items()} == {
        "trace_level": ["OFF"],
        "trace_rate": ["7"],
        "trace_count": ["-1"],
        "log_frequency": ["0"],
        "trace_file": [""],
        "trace_mode": ["triton"],
    }
    assert stub.TraceSetting(pb.TraceSettingRequest(model_name="echo")).settings == changed
    assert list(stub.TraceSetting(trace_change("trace_rate")).settings["trace_rate"].value) == ["1000"]


def test_log_settings_change_and_are_reported(stub: Any, running: Running) -> None:
    changed = stub.LogSettings(log_change("log_verbose_level", uint32_param=2))
    assert changed.settings["log_verbose_level"].uint32_param == 2
    assert changed.settings["log_file"].WhichOneof("parameter_choice") == "string_param"
    assert running.plane.log.lets_through(logging.DEBUG)
    assert stub.LogSettings(log_change("no such setting")).settings == changed.settings


def test_no_region_is_registered_and_all_can_be_unregistered(stub: Any, running: Running) -> None:
    running.plane.regions = client_regions(allowed=True)
    assert not stub.SystemSharedMemoryStatus(pb.SystemSharedMemoryStatusRequest()).regions
    assert not stub.CudaSharedMemoryStatus(pb.CudaSharedMemoryStatusRequest()).regions
    stub.SystemSharedMemoryUnregister(pb.SystemSharedMemoryUnregisterRequest())
    stub.CudaSharedMemoryUnregister(pb.CudaSharedMemoryUnregisterRequest(name="r"))


CODE = grpc.StatusCode
F = b"\0\0\0\0"


@pytest.mark.parametrize(
    ("method", "request_", "code", "reported"),
    [
        ("ModelInfer", message("none", "FP32", F), CODE.NOT_FOUND, "Request for unknown model"),
        ("ModelInfer", message("none", "FP99", F), CODE.NOT_FOUND, "Request for unknown model"),
        ("ModelInfer", message("fails", "FP32", F), CODE.INTERNAL, "the model broke"),
        ("ModelInfer", message("busy", "FP32", F), CODE.UNAVAILABLE, "Exceeds maximum queue size"),
        ("ModelInfer", message("repeat", "INT32", F), CODE.UNIMPLEMENTED, "ModelInfer RPC doesn't support models with decoupled transaction policy"),
        ("ModelInfer", message("echo", "FP32", F, version="x"), CODE.INVALID_ARGUMENT, "failed to get model version"),
        ("ModelInfer", message("echo", "FP32", F, version="-1"), CODE.INVALID_ARGUMENT, "invalid model version"),
        ("ModelMetadata", pb.ModelMetadataRequest(name="none"), CODE.NOT_FOUND, "unknown model"),
        ("RepositoryModelLoad", pb.RepositoryModelLoadRequest(model_name="bad"), CODE.INVALID_ARGUMENT, "failed to load 'bad'"),
        ("RepositoryModelLoad", pb.RepositoryModelLoadRequest(repository_name="r"), CODE.UNIMPLEMENTED, "'repository_name' specification"),
        ("TraceSetting", trace_change("trace_file", "x"), CODE.UNIMPLEMENTED, "trace file location"),
        ("TraceSetting", trace_change("trace_rate", "x"), CODE.INVALID_ARGUMENT, "Unable to parse 'trace_rate', got: x"),
        ("TraceSetting", trace_change("trace_level", "TENSORS"), CODE.INVALID_ARGUMENT, "trace file name is not given"),
        ("LogSettings", log_change("log_file", string_param="x"), CODE.UNIMPLEMENTED, "log file location"),
        ("LogSettings", log_change("log_info", string_param="x"), CODE.INVALID_ARGUMENT, "expect boolean for 'log_info'"),
        ("LogSettings", log_change("log_verbose_level", bool_param=True), CODE.INVALID_ARGUMENT, "expect int32 for 'log_verbose_level'"),
        ("LogSettings", log_change("log_format", string_param="x"), CODE.INVALID_ARGUMENT, "invalid argument for log_format, got: x"),
        ("SystemSharedMemoryStatus", pb.SystemSharedMemoryStatusRequest(name="r"), CODE.NOT_FOUND, "Unable to find system shared memory region: 'r'"),
        ("CudaSharedMemoryRegister", pb.CudaSharedMemoryRegisterRequest(), CODE.UNIMPLEMENTED, "Client shared memory is disabled"),
        ("RepositoryIndex", pb.RepositoryIndexRequest(repository_name="r"), CODE.UNIMPLEMENTED, "'repository_name' specification"),
    ],
)  # fmt: skip
def test_errors(stub: Any, method: str, request_: Any, code: grpc.StatusCode, reported: str) -> None:
    with pytest.raises(grpc.RpcError) as raised:
        getattr(stub, method)(request_)
    assert raised.value.code() is code
    assert reported in raised.value.details()


def test_load_parameters_must_have_their_type(stub: Any) -> None:
    request = pb.RepositoryModelLoadRequest(model_name="m")
    request.parameters["file:1/x"].string_param = "x"
    with pytest.raises(grpc.RpcError, match="invalid value type for load parameter 'file:1/x', expected bytes_param"):
        stub.RepositoryModelLoad(request)


def test_health(running: Running) -> None:
    with grpc.insecure_channel(f"127.0.0.1:{running.grpc}") as channel:
        health = health_pb2_grpc.HealthStub(channel)
        assert health.Check(health_pb2.HealthCheckRequest()).status == health_pb2.HealthCheckResponse.SERVING
        running.plane.is_ready = False
        assert health.Check(health_pb2.HealthCheckRequest()).status == health_pb2.HealthCheckResponse.NOT_SERVING


def counts(count: int, request_id: str = "", empty_final: bool = False) -> pb.ModelInferRequest:
    request = message("repeat", "INT32", np.array([count], np.int32).tobytes(), request_id)
    if empty_final:
        request.parameters["triton_enable_empty_final_response"].bool_param = True
    return request


def final(response: pb.ModelStreamInferResponse) -> bool:
    return bool(response.infer_response.parameters["triton_final_response"].bool_param)


def test_stream_of_a_decoupled_model(stub: Any) -> None:
    responses = list(stub.ModelStreamInfer(iter([counts(2, "a")])))
    assert [np.frombuffer(r.infer_response.raw_output_contents[0], np.int32)[0] for r in responses] == [0, 1]
    assert [final(r) for r in responses] == [False, False]
    responses = list(stub.ModelStreamInfer(iter([counts(1, "a", empty_final=True)])))
    assert [final(r) for r in responses] == [False, True]
    last = responses[-1].infer_response
    assert (last.id, last.model_name, len(last.outputs)) == ("a", "repeat", 0)


def test_stream_keeps_the_order_of_models_that_are_not_decoupled(stub: Any, running: Running) -> None:
    running.plane.released.set()
    requests = [message("slow", "FP32", F, "0")]
    requests += [message("busy" if index == 2 else "slow", "FP32", F, str(index)) for index in range(1, 5)]
    responses = list(stub.ModelStreamInfer(iter(requests)))
    assert [r.infer_response.id for r in responses] == ["0", "1", "2", "3", "4"]
    assert [r.error_message for r in responses] == ["", "", "Exceeds maximum queue size", "", ""]
    assert all(final(r) for r in responses if not r.error_message)


def test_stream_tells_errors_in_the_response(stub: Any) -> None:
    bad_input = message("slow", "FP32", b"\0\0\0", "size")
    requests = [message("none", "FP32", F, "n"), message("fails", "FP32", F, "f"), bad_input]
    responses = list(stub.ModelStreamInfer(iter(requests)))
    assert [(r.infer_response.id, r.error_message) for r in responses] == [
        ("n", "Request for unknown model: 'none' is not found"),
        ("f", "the model broke"),
        ("size", "[request id: size] input byte size mismatch for input 'IN' for model 'slow'. Expected 0, got 3"),
    ]  # fmt: skip
    assert responses[1].infer_response.model_name == "fails"
    assert final(responses[1])


def test_stream_closes_with_a_status_on_request(stub: Any) -> None:
    for model, code in (("fails", CODE.INTERNAL), ("none", CODE.NOT_FOUND)):
        stream = stub.ModelStreamInfer(iter([message(model, "FP32", F)]), metadata=(("triton_grpc_error", "true"),))
        with pytest.raises(grpc.RpcError) as raised:
            list(stream)
        assert raised.value.code() is code


def test_cancelling_a_stream_cancels_its_requests(stub: Any, running: Running) -> None:
    stream = stub.ModelStreamInfer(iter([message("slow", "FP32", F)]))
    assert running.plane.started.wait(60)
    stream.cancel()
    assert running.plane.cancelled.wait(60)


def test_cancelling_infer_cancels_the_request(stub: Any, running: Running) -> None:
    call = stub.ModelInfer.future(message("slow", "FP32", F))
    assert running.plane.started.wait(60)
    call.cancel()
    assert running.plane.cancelled.wait(60)


def test_tritonclient_stream(client: triton.InferenceServerClient) -> None:
    answers: queue.Queue[tuple[Any, Any]] = queue.Queue()
    client.start_stream(callback=lambda result, error: answers.put((result, error)))
    sent = triton.InferInput("IN", [1], "INT32")
    sent.set_data_from_numpy(np.array([3], np.int32))
    client.async_stream_infer("repeat", [sent], enable_empty_final_response=True)
    results = [answers.get(timeout=60)[0] for _ in range(4)]
    assert [int(result.as_numpy("OUT")[0]) for result in results[:3]] == [0, 1, 2]
    client.stop_stream()


async def test_tritonclient_aio(running: Running) -> None:
    async with triton_aio.InferenceServerClient(f"127.0.0.1:{running.grpc}") as client:
        sent = triton_aio.InferInput("IN", [1, 2], "FP32")
        sent.set_data_from_numpy(np.array([[1, 2]], np.float32))
        results = await asyncio.gather(*(client.infer("echo", [sent]) for _ in range(8)))
        assert all(result.as_numpy("OUT").tolist() == [[1, 2]] for result in results)

        async def requests() -> AsyncIterator[dict[str, Any]]:
            yield {"model_name": "echo", "inputs": [sent]}

        answers = [answer async for answer in client.stream_infer(requests())]
        assert answers[0][0].as_numpy("OUT").tolist() == [[1, 2]]


def test_restricted(running: Running) -> None:
    with triton.InferenceServerClient(f"127.0.0.1:{running.restricted_grpc}") as client:
        assert client.is_server_live()
        reported = "This protocol is restricted, expecting header 'Open-Sesame'"
        with pytest.raises(InferenceServerException, match=reported) as raised:
            client.get_model_repository_index()
        assert raised.value.status() == "StatusCode.UNAVAILABLE"
        assert client.get_model_repository_index(headers={"open-sesame": "please"}).models
    with grpc.insecure_channel(f"127.0.0.1:{running.restricted_grpc}") as channel:
        stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
        with pytest.raises(grpc.RpcError, match="This protocol is restricted"):
            list(stub.ModelStreamInfer(iter([counts(1)])))


async def test_a_port_in_use_is_named_by_its_flag(running: Running) -> None:
    options = grpc_frontend.GrpcListenOptions(host="127.0.0.1", port=running.grpc)
    with pytest.raises(ServingError, match=f"--grpc-port {running.grpc} is in use"):
        await grpc_frontend.serve(running.plane, options)


async def test_drain_lets_calls_finish(running: Running) -> None:
    listener = await grpc_frontend.serve(running.plane, grpc_frontend.GrpcListenOptions(host="127.0.0.1", port=0))
    async with grpc.aio.insecure_channel(f"127.0.0.1:{listener.port}") as channel:
        stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
        call = stub.ModelInfer(message("slow", "FP32", F, "late"))
        pending = asyncio.ensure_future(call)
        assert await asyncio.to_thread(running.plane.started.wait, 5)
        stopping = asyncio.create_task(listener.stop(5))
        await asyncio.sleep(0)
        running.plane.released.set()
        assert (await pending).id == "late"
        await stopping
