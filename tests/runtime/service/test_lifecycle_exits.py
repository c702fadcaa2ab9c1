"""However a load or an unload ends, a state stands in the index, nothing is left of it, and what served goes on."""

import asyncio
import os
from contextlib import suppress

import grpc
import psutil
import pytest
from tests.runtime.service.conftest import CONFIG, Gate, ask, infer, reason, settled, states, value
from tests.runtime.service.test_lifecycle import ENSEMBLE
from tests.waiting import until
from tritonclient.grpc import service_pb2 as pb
from tritonclient.grpc import service_pb2_grpc

from argosy_runtime.errors import ErrorKind, ServingError
from argosy_runtime.frontends.grpc import listener as grpc_frontend
from argosy_runtime.frontends.http import app as http_frontend
from argosy_runtime.repository import ensembles
from argosy_runtime.repository.options import ControlMode
from argosy_runtime.repository.preparing import preparer
from argosy_runtime.repository.serving.served import ServedModel


def processes() -> list[psutil.Process]:
    """Return the running processes of models that this one has started, without those of other tests' servers."""
    started = psutil.Process(os.getpid()).children()
    return [item for item in started if _is_a_models(item)]


def _is_a_models(process: psutil.Process) -> bool:
    try:
        return "argosy_runtime.execution.process.worker" in process.cmdline()
    except psutil.Error:
        return False


async def served(plane, name: str) -> None:
    """Wait until a model answers."""
    await until(lambda: plane.model_ready(name, ""))


async def test_a_load_goes_on_when_who_requested_it_has_gone(repository, serve, gate):
    repository.add("m", initialize=gate.code)
    plane = await serve()
    loading = asyncio.create_task(plane.load("m", None, {}))
    await gate.reached()
    loading.cancel()
    await asyncio.wait([loading])
    assert loading.cancelled()
    assert await states(plane) == {"m:1": "LOADING"}
    assert not plane.ready()
    gate.open()
    await served(plane, "m")
    assert await states(plane) == {"m:1": "READY"}
    assert plane.ready()
    assert await value(plane, "m", 3) == 3


async def test_a_load_that_fails_after_who_requested_it_has_gone_tells_the_index(repository, serve, gate):
    repository.add("m", initialize=f"{gate.code}; raise ValueError('no weights')")
    plane = await serve()
    loading = asyncio.create_task(plane.load("m", None, {}))
    await gate.reached()
    loading.cancel()
    gate.open()
    await settled(plane)
    assert await states(plane) == {"m:1": "UNAVAILABLE"}
    assert "no weights" in await reason(plane, "m")
    assert not plane.ready()
    assert not processes()


async def test_an_http_client_that_hangs_up_leaves_the_load_running(repository, serve, gate):
    repository.add("m", initialize=gate.code)
    plane = await serve()
    listener = await http_frontend.serve(plane, http_frontend.HttpOptions(host="127.0.0.1", port=0))
    _, writer = await asyncio.open_connection("127.0.0.1", listener.port)
    writer.write(b"POST /v2/repository/models/m/load HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n")
    await gate.reached()
    writer.close()
    # Another client comes after it, so when that one is answered the first one's end has been seen.
    reader, writer = await asyncio.open_connection("127.0.0.1", listener.port)
    writer.write(b"GET /v2/health/ready HTTP/1.1\r\nHost: x\r\n\r\n")
    assert (await reader.readline()).startswith(b"HTTP/1.1 400")
    writer.close()
    assert await states(plane) == {"m:1": "LOADING"}
    gate.open()
    await served(plane, "m")
    assert plane.ready()
    await listener.stop(1)


async def test_a_grpc_client_that_hangs_up_leaves_the_load_running(repository, serve, gate):
    repository.add("m", initialize=gate.code)
    plane = await serve()
    listener = await grpc_frontend.serve(plane, grpc_frontend.GrpcListenOptions(host="127.0.0.1", port=0))
    async with grpc.aio.insecure_channel(f"127.0.0.1:{listener.port}") as channel:
        stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
        call = stub.RepositoryModelLoad(pb.RepositoryModelLoadRequest(model_name="m"))
        await gate.reached()
        call.cancel()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{listener.port}") as channel:
        stub = service_pb2_grpc.GRPCInferenceServiceStub(channel)
        assert not (await stub.ServerReady(pb.ServerReadyRequest())).ready
    assert await states(plane) == {"m:1": "LOADING"}
    gate.open()
    await served(plane, "m")
    assert plane.ready()
    await listener.stop(1)


async def test_the_end_of_the_server_ends_what_is_being_loaded(repository, serve, gate):
    repository.add("m", initialize=gate.code)
    plane = await serve()
    loading = asyncio.create_task(plane.load("m", None, {}))
    await gate.reached()
    await plane.close(grace=0)
    with pytest.raises(ServingError, match="Server is stopping"):
        await loading
    assert await states(plane) == {"m:1": "UNAVAILABLE"}
    assert not processes()
    with pytest.raises(ServingError, match="Server is stopping"):
        await plane.load("m", None, {})


async def test_the_end_of_the_server_while_it_starts(repository, serve, gate):
    repository.add("m", initialize=gate.code)
    repository.add("done")
    starting = asyncio.create_task(serve(ControlMode.NONE))
    await gate.reached()
    starting.cancel()
    await asyncio.wait([starting])
    assert processes(), "the load itself goes on"
    # The fixture closes what it has made.


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), MemoryError("too much"), KeyError("x")])
async def test_what_no_one_foresaw_is_reported_like_any_failure(repository, serve, monkeypatch, error):
    repository.add("m")
    plane = await serve()

    async def start(self) -> None:
        raise error

    monkeypatch.setattr(ServedModel, "start", start)
    with pytest.raises(ServingError, match=type(error).__name__):
        await plane.load("m", None, {})
    assert type(error).__name__ in await reason(plane, "m")
    assert await states(plane) == {"m:1": "UNAVAILABLE"}
    monkeypatch.undo()
    await plane.load("m", None, {})
    assert await value(plane, "m", 3) == 3


async def test_a_disk_that_fails_while_a_configuration_is_completed(repository, serve, monkeypatch):
    repository.add("m")
    plane = await serve()

    def fail(*args: object) -> bool:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(preparer, "_needs_completion", fail)
    with pytest.raises(ServingError, match="Input/output error"):
        await plane.load("m", None, {})
    assert "Input/output error" in await reason(plane, "m")
    assert not plane.ready()


async def test_an_ensemble_s_unforeseen_error_does_not_stop_its_step_s_load(repository, serve, monkeypatch):
    for name in "ab":
        repository.add(name)
    repository.write("e", {"1/.keep": ""}, ENSEMBLE)
    plane = await serve()
    await plane.load("e", None, {})

    def fail(*args: object) -> None:
        raise KeyError("tensor")

    monkeypatch.setattr(ensembles, "check_steps", fail)
    repository.add("a", execute="y = x + 1")
    await plane.load("a", None, {})
    assert await value(plane, "a", 1) == 2
    assert "KeyError" in await reason(plane, "e")
    with pytest.raises(ServingError, match="KeyError"):
        await plane.load("e", None, {})
    monkeypatch.undo()
    await plane.load("e", None, {})
    assert await value(plane, "e", 1) == 2


async def test_a_refused_reload_of_an_ensemble_leaves_the_old_one_serving(repository, serve):
    repository.add("a", execute="y = x + 1")
    repository.add("b", execute="y = x * 10")
    repository.write("e", {"1/.keep": ""}, ENSEMBLE)
    plane = await serve()
    await plane.load("e", None, {})
    for refused in (
        ENSEMBLE.replace('"b"', '"nope"'),
        ENSEMBLE.replace("dims: [ 1 ]", "dims: [ 2 ]"),
        ENSEMBLE.replace("max_batch_size: 8", "max_batch_size: 9"),
        ENSEMBLE.replace('value: "mid"', 'value: "other"', 1),
    ):
        repository.write("e", {}, refused)
        with pytest.raises(ServingError):
            await plane.load("e", None, {})
        assert await value(plane, "e", 1) == 20
        assert (await states(plane))["e:1"] == "READY"
    repository.add("a", execute="y = x + 2")
    await plane.load("a", None, {})
    assert await value(plane, "e", 1) == 30, "it follows its steps as before"
    repository.write("e", {}, ENSEMBLE.replace('"b"', '"a"'))
    await plane.load("e", None, {})
    assert await value(plane, "e", 1) == 5


async def test_a_refused_load_does_not_bring_back_an_unloaded_ensemble(repository, serve):
    for name in "ab":
        repository.add(name)
    repository.write("e", {"1/.keep": ""}, ENSEMBLE)
    plane = await serve()
    await plane.load("e", None, {})
    await plane.unload("e", False)
    repository.write("e", {}, "max_batch_size: -1")
    with pytest.raises(ServingError):
        await plane.load("e", None, {})
    await plane.load("a", None, {})
    assert (await states(plane))["e:1"] == "UNAVAILABLE"


async def test_versions_take_over_together_or_not_at_all(repository, serve):
    every = CONFIG + "version_policy { all {} }"
    for version in (1, 2):
        repository.add("m", execute=f"y = x + {version}", version=version, config=every)
    plane = await serve()
    await plane.load("m", None, {})
    repository.add("m", execute="y = x + 100", version=1, config=every)
    repository.add("m", initialize="raise ValueError('no weights')", version=2, config=every)
    with pytest.raises(ServingError, match=r"version 2 is at UNAVAILABLE state: .*no weights"):
        await plane.load("m", None, {})
    assert [await value(plane, "m", 1, version) for version in "12"] == [2, 3]
    await settled(plane)
    assert len(processes()) == 2, "the first version, which had loaded anew, is released"


async def test_of_versions_in_a_first_load_none_serves_if_one_fails(repository, serve):
    every = CONFIG + "version_policy { all {} }"
    repository.add("m", version=1, config=every)
    repository.add("m", initialize="raise ValueError('no weights')", version=2, config=every)
    plane = await serve()
    with pytest.raises(ServingError):
        await plane.load("m", None, {})
    index = (await plane.index(ready_only=False)).models
    reported = [(item.version, item.state, item.reason.partition(":")[2].strip() or item.reason) for item in index]
    assert reported[0] == ("1", "UNAVAILABLE", "unloaded")
    assert reported[1][:2] == ("2", "UNAVAILABLE")
    assert "no weights" in reported[1][2]
    assert not processes()


async def test_a_model_that_cannot_be_released_is_unloaded_all_the_same(repository, serve, monkeypatch, caplog):
    repository.add("m")
    plane = await serve()
    await plane.load("m", None, {})
    close = ServedModel.close

    async def fail(self, grace: float) -> None:
        await close(self, grace)
        raise RuntimeError("stuck")

    monkeypatch.setattr(ServedModel, "close", fail)
    await plane.unload("m", False)
    await settled(plane)
    assert await states(plane) == {"m:1": "UNAVAILABLE"}
    assert "releasing 'm' version 1 failed" in caplog.text
    assert plane.ready()


async def test_a_warm_up_of_no_requests_is_left_out(repository, serve):
    sample = 'inputs { key: "X" value { data_type: TYPE_FP32 dims: 1 zero_data: true } }'
    repository.add("m", config=CONFIG + 'model_warmup { name: "w" batch_size: 0 ' + sample + " }")
    plane = await serve()
    await plane.load("m", None, {})
    assert plane.statistics("m", "").model_stats[0].execution_count == 0
    assert await value(plane, "m", 3) == 3


async def test_a_request_left_behind_by_an_unload_learns_of_it(repository, serve, tmp_path):
    gate = Gate(tmp_path / "stuck")
    repository.add("m", execute=gate.code)
    plane = await serve(unload_grace=0.1)
    await plane.load("m", None, {})
    running = asyncio.create_task(infer(plane, ask("m")))
    await gate.reached()
    await plane.unload("m", False)
    with pytest.raises(ServingError, match="was unloaded") as caught:
        await running
    assert caught.value.kind is ErrorKind.UNAVAILABLE
    await settled(plane)
    with pytest.raises(ServingError) as caught:
        await infer(plane, ask("m"))
    assert caught.value.kind is ErrorKind.NOT_FOUND


async def test_a_server_that_ends_shortens_the_time_of_versions_that_leave(repository, serve, tmp_path):
    works, stops = Gate(tmp_path / "works"), Gate(tmp_path / "stops")
    repository.add("works", execute=works.code)
    repository.add("stops")
    source = (repository.path / "stops/1/model.py").read_text()
    stop = f"\n    def finalize(self):\n        import os, time\n        {stops.code}\n"
    (repository.path / "stops/1/model.py").write_text(source + stop)
    plane = await serve(unload_grace=1e6)
    await plane.load("works", None, {})
    await plane.load("stops", None, {})
    running = asyncio.create_task(infer(plane, ask("works")))
    await works.reached()
    await plane.unload("works", False)
    await plane.unload("stops", False)
    await stops.reached()
    await plane.close(0.1)
    with pytest.raises(ServingError, match="was unloaded"):
        await running
    assert await states(plane) == {"stops:1": "UNAVAILABLE", "works:1": "UNAVAILABLE"}


async def test_both_protocols_report_the_unload(repository, serve, tmp_path):
    gate = Gate(tmp_path / "stuck")
    repository.add("m", execute=gate.code)
    plane = await serve(unload_grace=0.1)
    await plane.load("m", None, {})
    by_http = await http_frontend.serve(plane, http_frontend.HttpOptions(host="127.0.0.1", port=0))
    by_grpc = await grpc_frontend.serve(plane, grpc_frontend.GrpcListenOptions(host="127.0.0.1", port=0))
    reader, writer = await asyncio.open_connection("127.0.0.1", by_http.port)
    body = b'{"inputs":[{"name":"X","datatype":"FP32","shape":[1,1],"data":[1]}]}'
    writer.write(b"POST /v2/models/m/infer HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
    tensor = pb.ModelInferRequest.InferInputTensor(name="X", datatype="FP32", shape=[1, 1])
    request = pb.ModelInferRequest(model_name="m", inputs=[tensor], raw_input_contents=[bytes(4)])
    async with grpc.aio.insecure_channel(f"127.0.0.1:{by_grpc.port}") as channel:
        call = service_pb2_grpc.GRPCInferenceServiceStub(channel).ModelInfer(request)
        await gate.reached()
        await until(lambda: plane.requests >= 2)
        await plane.unload("m", False)
        with pytest.raises(grpc.aio.AioRpcError, match="was unloaded") as caught:
            await call
    assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
    assert (await reader.readline()).startswith(b"HTTP/1.1 503")
    writer.close()
    await asyncio.gather(by_http.stop(1), by_grpc.stop(1))


COMPLETING = """
import os, time
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    @staticmethod
    def auto_complete_config(config):
        {gate}
        return config

    def execute(self, requests):
        inputs = [pb_utils.get_input_tensor_by_name(request, "X") for request in requests]
        return [pb_utils.InferenceResponse([pb_utils.Tensor("Y", x.as_numpy())]) for x in inputs]
"""


async def test_a_configuration_that_is_completed_in_a_thread_for_too_long(repository, serve, gate):
    thread = 'parameters { key: "ISOLATION" value { string_value: "thread" } }'
    repository.write("m", {"1/model.py": COMPLETING.format(gate=gate.code)}, CONFIG + thread)
    plane = await serve(load_timeout=0.5)
    with pytest.raises(ServingError, match=r"is still loading after 0\.5 s"):
        await plane.load("m", None, {})
    with pytest.raises(ServingError, match="took too long and still goes on in a thread"):
        await plane.load("m", None, {})
    assert await states(plane) == {"m:1": "UNAVAILABLE"}
    gate.open()
    while not plane.model_ready("m", ""):
        with suppress(ServingError):
            await plane.load("m", None, {})
    assert await value(plane, "m", 3) == 3


async def test_what_a_completion_in_a_thread_raises_is_reported(repository, serve):
    thread = 'parameters { key: "ISOLATION" value { string_value: "thread" } }'
    repository.write("m", {"1/model.py": COMPLETING.format(gate="raise KeyError('shape')")}, CONFIG + thread)
    plane = await serve()
    with pytest.raises(ServingError, match="shape"):
        await plane.load("m", None, {})
    assert "shape" in await reason(plane, "m")
