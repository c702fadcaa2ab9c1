"""`argosy serve --load-on-demand`: over HTTP, gRPC and its streams, with processes that come and go."""

import json
import queue
import urllib.error
import urllib.request
from typing import Any

import numpy as np
import pytest
from tests.memory_objects import memory_object
from tests.serve.conftest import AddModel, Start
from tests.serve.process import Serving, wait_until
from tritonclient import grpc as grpcclient
from tritonclient.utils import InferenceServerException

FLAGS = ("--model-control-mode=explicit", "--load-on-demand=true")


def _inputs(value: int) -> list[grpcclient.InferInput]:
    tensor = grpcclient.InferInput("X", [1], "INT32")
    tensor.set_data_from_numpy(np.array([value], np.int32))
    return [tensor]


def _models(server: Serving) -> list[str]:
    """Return the models that are loaded."""
    index = json.loads(server.ask("/v2/repository/index", b"")[1])
    return [row["name"] for row in index if row.get("state") == "READY"]


def test_http(serve: Start, add_model: AddModel) -> None:
    for name in ("a", "b"):
        add_model(name)
    server = serve(*FLAGS).wait_until_ready()
    assert _models(server) == []
    assert server.status("/v2/models/a/ready") == 200
    assert server.infer("a", 3) == (200, 3)
    assert _models(server) == ["a"]
    status, body = server.ask("/v2/models/b/generate", {"X": 5})
    assert (status, json.loads(body)["Y"]) == (200, 5)
    assert _models(server) == ["a", "b"]
    assert server.infer("nope", 1) == (404, "Request for unknown model: 'nope' is not found")
    assert 'argosy_on_demand_loads_total{model="b"} 1' in server.metrics()


def test_metadata_loads_too(serve: Start, add_model: AddModel) -> None:
    add_model("a")
    server = serve(*FLAGS).wait_until_ready()
    status, body = server.ask("/v2/models/a")
    assert (status, json.loads(body)["versions"]) == (200, ["1"])
    assert _models(server) == ["a"]


def test_grpc_and_its_stream(serve: Start, add_model: AddModel) -> None:
    for name in ("a", "b", "c"):
        add_model(name)
    server = serve(*FLAGS).wait_until_ready()
    answers: queue.Queue[Any] = queue.Queue()
    with grpcclient.InferenceServerClient(f"127.0.0.1:{server.ports['GRPCInference']}") as client:
        assert client.infer("a", _inputs(4)).as_numpy("Y").tolist() == [4]
        assert client.get_model_config("c").config.name == "c"
        client.start_stream(lambda result, error: answers.put(error or result))
        for value in range(3):
            client.async_stream_infer("b", _inputs(value))
        client.async_stream_infer("nope", _inputs(9))
        client.async_stream_infer("a", _inputs(7))
        got = [answers.get(timeout=30) for _ in range(5)]
        client.stop_stream()
    assert [result.as_numpy("Y").tolist() for result in (*got[:3], got[4])] == [[0], [1], [2], [7]]
    assert isinstance(got[3], InferenceServerException)
    assert "unknown model: 'nope' is not found" in str(got[3])


def test_a_raw_body_loads_its_model(serve: Start, add_model: AddModel) -> None:
    add_model("a")
    server = serve(*FLAGS).wait_until_ready()
    for path, expected in (("a", (200, 6)), ("nope", (404, 0)), ("a/versions/7", (404, 0))):
        url = f"http://127.0.0.1:{server.ports['HTTP']}/v2/models/{path}/infer"
        request = urllib.request.Request(url, np.array([6], np.int32).tobytes())
        request.add_header("Inference-Header-Content-Length", "0")
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                got = answer.status, int.from_bytes(answer.read()[-4:], "little")
        except urllib.error.HTTPError as error:
            with error:
                got = error.code, 0
        assert got == expected


def test_requests_with_tensors_in_shared_memory_load_their_models(serve: Start, add_model: AddModel) -> None:
    for name in ("a", "b", "c"):
        add_model(name)
    server = serve(*FLAGS, "--allow-client-shm=true").wait_until_ready()
    answers: queue.Queue[Any] = queue.Queue()
    located = {"shared_memory_region": "r", "shared_memory_byte_size": 4}
    with (
        memory_object(np.array([8, 0], np.int32).tobytes()) as made,
        grpcclient.InferenceServerClient(f"127.0.0.1:{server.ports['GRPCInference']}") as client,
    ):
        client.register_system_shared_memory("r", made.key, 8)
        tensor = {"name": "X", "datatype": "INT32", "shape": [1], "parameters": located}
        status, body = server.ask("/v2/models/a/infer", {"inputs": [tensor]})
        assert (status, json.loads(body)["outputs"][0]["data"]) == (200, [8])
        wrong = {**tensor, "parameters": {**located, "shared_memory_region": "none"}}
        status, body = server.ask("/v2/models/b/infer", {"inputs": [wrong]})
        assert (status, _models(server)) == (404, ["a"])
        assert "Unable to find shared memory region: 'none'" in json.loads(body)["error"]
        shared = grpcclient.InferInput("X", [1], "INT32")
        shared.set_shared_memory("r", 4)
        output = grpcclient.InferRequestedOutput("Y")
        output.set_shared_memory("r", 4, offset=4)
        client.infer("b", [shared], outputs=[output])
        assert np.frombuffer(made.read(), np.int32).tolist() == [8, 8]
        client.start_stream(lambda result, error: answers.put(error or result))
        client.async_stream_infer("c", [shared])
        assert answers.get(timeout=30).as_numpy("Y").tolist() == [8]
        client.stop_stream()
    assert _models(server) == ["a", "b", "c"]


def test_a_version_that_a_loaded_model_lacks_is_missing(serve: Start, add_model: AddModel) -> None:
    add_model("a")
    server = serve(*FLAGS).wait_until_ready()
    answers: queue.Queue[Any] = queue.Queue()
    with grpcclient.InferenceServerClient(f"127.0.0.1:{server.ports['GRPCInference']}") as client:
        client.start_stream(lambda result, error: answers.put(error or result))
        client.async_stream_infer("a", _inputs(1), model_version="7")
        assert "'a' version 7 is not found" in str(answers.get(timeout=10))
        client.stop_stream()


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_a_decoupled_model_is_refused_by_the_endpoint_also_before_it_is_loaded(
    serve: Start, add_model: AddModel, protocol: str
) -> None:
    config = add_model("a") / "config.pbtxt"
    config.write_text(config.read_text() + "model_transaction_policy { decoupled: true }")
    server = serve(*FLAGS).wait_until_ready()
    for expected in ([], ["a"]):
        assert _models(server) == expected
        if protocol == "http":
            status, message = server.infer("a", 1)
            assert (status, message) == (
                501,
                "HTTP end point doesn't support models with decoupled transaction policy",
            )
            continue
        with (
            grpcclient.InferenceServerClient(f"127.0.0.1:{server.ports['GRPCInference']}") as client,
            pytest.raises(InferenceServerException) as raised,
        ):
            client.infer("a", _inputs(1))
        assert raised.value.status() == "StatusCode.UNIMPLEMENTED"
        assert raised.value.message() == "ModelInfer RPC doesn't support models with decoupled transaction policy"


def test_models_give_way_by_what_they_use(serve: Start, add_model: AddModel) -> None:
    for name in ("a", "b"):
        add_model(name)
    server = serve(*FLAGS).wait_until_ready()
    assert server.infer("a", 1) == (200, 1)
    (usage,) = json.loads(server.ask("/v2/models/a/stats")[1])["model_stats"][0]["memory_usage"]
    used = usage["byte_size"]
    assert usage == {"type": "CPU", "id": 0, "byte_size": used}
    assert 5_000_000 < used < 200_000_000
    sample = f'argosy_model_memory_bytes{{model="a",version="1",type="CPU",device="0"}} {used}'
    assert sample in server.metrics()
    server = serve(*FLAGS, f"--model-memory-limit={used * 3 // 2}").wait_until_ready()
    for name in ("a", "b", "a"):
        assert server.infer(name, 2) == (200, 2)
        wait_until(lambda name=name: _models(server) == [name], server.log)
        wait_until(lambda: len(server.workers()) == 1, server.log)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--load-on-demand=true",), "--load-on-demand can only be used with --model-control-mode=explicit"),
        (("--model-memory-limit=1Gi",), "--model-memory-limit can only be used with --load-on-demand=true"),
        ((*FLAGS, "--model-memory-limit=much"), "'much' is no quantity"),
    ],
)
def test_flags_that_do_not_go_together(serve: Start, add_model: AddModel, flags: tuple[str, ...], message: str) -> None:
    add_model("a")
    server = serve(*flags)
    assert server.process.wait(30) == 2
    assert message in server.text
