"""Python models as clients of `argosy serve` meet them: readiness, streams through models, cancellation, overlap."""

import json
import queue
import socket
import struct
import threading
from collections.abc import Iterator
from pathlib import Path

import grpc
import numpy as np
import pytest
import tritonclient.grpc as client
from grpc_health.v1 import health_pb2, health_pb2_grpc
from tests.serve.conftest import CONFIG
from tests.serve.process import Serving, start
from tests.waiting import wait

DECOUPLED = "model_transaction_policy { decoupled: true }\n"
CALLS = """
import asyncio, os, threading, time
import numpy as np
import triton_python_backend_utils as pb_utils


def answer(value):
    return pb_utils.InferenceResponse([pb_utils.Tensor("Y", np.array([value], np.int32))])


def number(request):
    return int(pb_utils.get_input_tensor_by_name(request, "X").as_numpy()[0])


class TritonPythonModel:
"""
MODELS = {
    "sick": (
        CONFIG,
        """
    def is_ready(self):
        return not os.path.exists(os.environ["TEST_SICK"])

    def execute(self, requests):
        return [answer(number(request)) for request in requests]
""",
    ),
    "count": (
        CONFIG + DECOUPLED,
        """
    def execute(self, requests):
        for request in requests:
            sender = request.get_response_sender()
            for value in range(number(request)):
                sender.send(answer(value))
            sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
""",
    ),
    "relay": (
        CONFIG + DECOUPLED,
        """
    def execute(self, requests):
        for request in requests:
            threading.Thread(target=self.relay, args=(request.get_response_sender(), request.inputs())).start()

    def relay(self, sender, inputs):
        call = pb_utils.InferenceRequest(model_name="count", inputs=inputs, requested_output_names=["Y"])
        for response in call.exec(decoupled=True):
            if response.output_tensors():
                sender.send(pb_utils.InferenceResponse(response.output_tensors()))
        sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
""",
    ),
    "patient": (
        CONFIG,
        """
    def execute(self, requests):
        open(os.environ["TEST_CANCELLED"], "a").write("begun, ")
        for _ in range(20000):
            if requests[0].is_cancelled():
                open(os.environ["TEST_CANCELLED"], "a").write("cancelled; ")
                break
            time.sleep(0.005)
        return [answer(0) for _ in requests]
""",
    ),
    "overlapping": (
        CONFIG + 'parameters { key: "MAX_CONCURRENT_BATCHES" value { string_value: "4" } }\n',
        """
    def initialize(self, args):
        self.begun = 0

    async def execute(self, requests):
        self.begun += 1
        while self.begun < 4:
            await asyncio.sleep(0.005)
        return [answer(self.begun) for _ in requests]
""",
    ),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("python")


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Serving]:
    """Yield a server of MODELS."""
    for name, (config, source) in MODELS.items():
        (folder / "models" / name / "1").mkdir(parents=True)
        (folder / "models" / name / "1" / "model.py").write_text(CALLS + source)
        (folder / "models" / name / "config.pbtxt").write_text(config)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TEST_SICK", str(folder / "is-sick"))
        patch.setenv("TEST_CANCELLED", str(folder / "cancelled"))
        serving = start(folder / "models", folder / "server.log")
    try:
        yield serving.wait_until_ready()
    finally:
        serving.end()


def inputs(value: int) -> list[client.InferInput]:
    """Return X."""
    x = client.InferInput("X", [1], "INT32")
    x.set_data_from_numpy(np.array([value], np.int32))
    return [x]


def test_what_a_model_says_of_its_readiness_is_the_server_s_over_both_protocols(server: Serving, folder: Path) -> None:
    address = f"127.0.0.1:{server.ports['GRPCInference']}"

    def ready() -> list[bool]:
        with client.InferenceServerClient(address) as triton, grpc.insecure_channel(address) as channel:
            check = health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest())
            return [
                server.status("/v2/models/sick/ready") == 200,
                server.status("/v2/health/ready") == 200,
                triton.is_model_ready("sick"),
                triton.is_server_ready(),
                check.status == health_pb2.HealthCheckResponse.SERVING,
            ]

    assert ready() == [True] * 5
    (folder / "is-sick").touch()
    assert ready() == [False] * 5
    assert server.ask("/v2/models/sick/ready") == (400, b'{"error":"Model version not ready"}')
    index = json.loads(server.ask("/v2/repository/index", b"")[1])
    assert "is_ready returned False" in next(row["reason"] for row in index if row["name"] == "sick")
    assert server.infer("sick", 5) == (200, 5)
    (folder / "is-sick").unlink()
    assert ready() == [True] * 5


def test_a_stream_through_two_models_reaches_the_client_in_order(server: Serving) -> None:
    answers: queue.Queue[object] = queue.Queue()
    with client.InferenceServerClient(f"127.0.0.1:{server.ports['GRPCInference']}") as triton:
        triton.start_stream(lambda result, error: answers.put(error or result))
        triton.async_stream_infer("relay", inputs(300), enable_empty_final_response=True)
        values = []
        while True:
            result = answers.get(timeout=30)
            assert isinstance(result, client.InferResult), result
            if result.get_response().parameters["triton_final_response"].bool_param:
                break
            values.append(int(result.as_numpy("Y")[0]))
        triton.stop_stream()
    assert values == list(range(300))


def test_a_plain_model_sees_while_it_runs_that_its_client_has_gone(server: Serving, folder: Path) -> None:
    written = folder / "cancelled"
    written.touch()
    body = json.dumps({"inputs": [{"name": "X", "datatype": "INT32", "shape": [1], "data": [1]}]}).encode()
    head = f"POST /v2/models/patient/infer HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    with socket.create_connection(("127.0.0.1", server.ports["HTTP"])) as connection:
        connection.sendall(head + body)
        wait(lambda: written.read_text() == "begun, ", 0.02)
        # Else the end of its side might be all that is said.
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    wait(lambda: written.read_text() == "begun, cancelled; ", 0.02)
    with client.InferenceServerClient(f"127.0.0.1:{server.ports['GRPCInference']}") as triton:
        call = triton.async_infer("patient", inputs(1), callback=lambda result, error: None)
        wait(lambda: written.read_text() == "begun, cancelled; begun, ", 0.02)
        call.cancel()
        wait(lambda: written.read_text() == 2 * "begun, cancelled; ", 0.02)


def test_coroutines_of_a_plain_model_overlap(server: Serving) -> None:
    answers: list[tuple[int, object]] = []
    threads = [threading.Thread(target=lambda: answers.append(server.infer("overlapping", 1))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [(200, 4)] * 4
