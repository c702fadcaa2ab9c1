"""One server whose model divides its requests between two versions: every way in, connections that stay, changes."""

import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from http.client import HTTPConnection
from pathlib import Path
from queue import Queue
from typing import Any

import numpy as np
import pytest
import tritonclient.grpc as triton_grpc
import tritonclient.http as triton_http
from tests.serve.conftest import CONFIG, MODEL, SPEAKER
from tests.serve.process import Serving, start, wait_until

from argosy_runtime.modelconfig.parameters.traffic import MILLIONTHS, Sticky, VersionTraffic, traffic_text

STICKY = (Sticky(header="x-user"), Sticky(parameter="user"))
SPEAKS = """
backend: "python"
max_batch_size: 0
input [ { name: "QUESTION" data_type: TYPE_STRING dims: [ 1 ] } ]
output [ { name: "ANSWER" data_type: TYPE_STRING dims: [ 1 ] } ]
parameters { key: "chat" value { string_value: '{"prompt": "QUESTION", "text": "ANSWER"}' } }
"""
JUDGE = """
import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        scores = pb_utils.Tensor("SCORES", np.array([0.1, 0.9], np.float32))
        return [pb_utils.InferenceResponse([scores]) for _ in requests]
"""
JUDGES = """
backend: "python"
max_batch_size: 0
input [ { name: "X" data_type: TYPE_INT32 dims: [ 1 ] } ]
output [ { name: "SCORES" data_type: TYPE_FP32 dims: [ 2 ] label_filename: "labels.txt" } ]
"""
EITHER = """
import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        self.version = int(args["model_version"])

    def execute(self, requests):
        answers = [pb_utils.InferenceResponse([pb_utils.Tensor("Y", np.array([self.version], np.int32))])]
        if self.version == 1:
            return answers
        for request in requests:
            sender = request.get_response_sender()
            sender.send(answers[0])
            sender.send(answers[0], flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
"""
CONFIGS = {
    "either": (CONFIG, EITHER),
    "judge": (JUDGES, JUDGE),
    "m": (CONFIG, MODEL.format(initialize="self.v = int(args['model_version'])", execute="y = self.v")),
    "speaker": (SPEAKS, SPEAKER),
}


class DividingServer:
    """The server, its repository, and the weights of its models."""

    def __init__(self, folder: Path) -> None:
        self.models = folder / "models"
        for name, (_, source) in CONFIGS.items():
            for version in ("1", "2"):
                (self.models / name / version).mkdir(parents=True)
                (self.models / name / version / "model.py").write_text(source)
            self.write(name, 0)
        (self.models / "either/2/argosy.pbtxt").write_text(CONFIG + "model_transaction_policy { decoupled: true }")
        judge = self.models / "judge"
        (judge / "2/argosy.pbtxt").write_text(JUDGES.replace("labels.txt", "newer.txt"))
        for file, right in (("labels.txt", "1"), ("newer.txt", "2")):
            (judge / file).write_text(f"no\nof version {right}\n")
        control = ("--model-control-mode=explicit", *(f"--load-model={name}" for name in CONFIGS))
        self.serving: Serving = start(self.models, folder / "server.log", *control)

    def write(self, name: str, percent: float) -> None:
        weight = round(percent * 10_000)
        traffic = traffic_text(VersionTraffic({1: MILLIONTHS - weight, 2: weight}, STICKY)).replace('"', '\\"')
        parameter = f'\nparameters {{ key: "version_traffic" value {{ string_value: "{traffic}" }} }}'
        text = CONFIGS[name][0] + "version_policy { all {} }" + parameter
        (self.models / name / "config.pbtxt").write_text(text)

    def divide(self, percent: float, name: str = "m", only: bool = False) -> None:
        """Give version 2 so many percent of a model's requests, by a load or by the division alone (`only`)."""
        self.write(name, percent)
        body = {"parameters": {"version_traffic": True}} if only else {}
        status, body = self.serving.ask(f"/v2/repository/models/{name}/load", body)
        assert status == 200, body

    def address(self, port: str) -> str:
        return f"127.0.0.1:{self.serving.ports[port]}"


@pytest.fixture(scope="module")
def divided(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DividingServer]:
    """Yield the one server of this module."""
    divided = DividingServer(tmp_path_factory.mktemp("divided"))
    try:
        divided.serving.wait_until_ready()
        yield divided
    finally:
        divided.serving.end()


Ask = Callable[..., int]
"""Sends a request, with these headers, and returns the version that answered."""


@pytest.fixture
def http_json(divided: DividingServer) -> Iterator[Ask]:
    """Yield requests in JSON, all over one connection."""
    connection = HTTPConnection(divided.address("HTTP"))
    tensor = {"name": "X", "datatype": "INT32", "shape": [1], "data": [1]}

    def ask(headers: dict[str, str] | None = None, **parameters: Any) -> int:
        body = json.dumps({"inputs": [tensor], "parameters": parameters})
        connection.request("POST", "/v2/models/m/infer", body, headers or {})
        answer = json.loads(connection.getresponse().read())
        assert answer["model_version"] == str(answer["outputs"][0]["data"][0])
        return int(answer["model_version"])

    yield ask
    connection.close()


@pytest.fixture
def http_binary(divided: DividingServer) -> Iterator[Ask]:
    """Yield requests with binary tensors, which are made of a template from the second on."""
    client = triton_http.InferenceServerClient(divided.address("HTTP"))
    tensor = triton_http.InferInput("X", [1], "INT32").set_data_from_numpy(np.array([1], np.int32))

    def ask(headers: dict[str, str] | None = None, **parameters: Any) -> int:
        # The client adds headers of its own to what it gets.
        result = client.infer("m", [tensor], headers=dict(headers or {}), parameters=parameters or None)
        assert result.get_response()["model_version"] == str(result.as_numpy("Y")[0])
        return int(result.as_numpy("Y")[0])

    yield ask
    client.close()


@pytest.fixture
def grpc(divided: DividingServer) -> Iterator[Ask]:
    """Yield calls over gRPC."""
    client = triton_grpc.InferenceServerClient(divided.address("GRPCInference"))
    tensor = triton_grpc.InferInput("X", [1], "INT32").set_data_from_numpy(np.array([1], np.int32))

    def ask(headers: dict[str, str] | None = None, **parameters: Any) -> int:
        metadata = {name.lower(): value for name, value in (headers or {}).items()}
        result = client.infer("m", [tensor], headers=metadata, parameters=parameters or None)
        assert result.get_response().model_version == str(result.as_numpy("Y")[0])
        return int(result.as_numpy("Y")[0])

    yield ask
    client.close()


@pytest.fixture
def generate(divided: DividingServer) -> Ask:
    """Return requests to the generate endpoint."""

    def ask(headers: dict[str, str] | None = None, **parameters: Any) -> int:
        connection = HTTPConnection(divided.address("HTTP"))
        body = json.dumps({"X": 1, "parameters": parameters} if parameters else {"X": 1})
        connection.request("POST", "/v2/models/m/generate", body, headers or {})
        answer = json.loads(connection.getresponse().read())
        connection.close()
        return int(answer["Y"])

    return ask


@pytest.fixture
def chat(divided: DividingServer) -> Ask:
    """Return chats over OpenAI's API; `user` is a field of their body."""

    def ask(headers: dict[str, str] | None = None, **fields: Any) -> int:
        connection = HTTPConnection(divided.address("HTTP"))
        body = {"model": "speaker", "messages": [{"role": "user", "content": "?"}], **fields}
        connection.request("POST", "/v1/chat/completions", json.dumps(body), headers or {})
        answer = json.loads(connection.getresponse().read())
        connection.close()
        return int(answer["choices"][0]["message"]["content"])

    return ask


WAYS = ["http_json", "http_binary", "grpc", "generate", "chat"]


@pytest.mark.parametrize("way", WAYS)
def test_requests_are_divided_exactly_whatever_they_come_by(divided, request, way):
    ask: Ask = request.getfixturevalue(way)
    divided.divide(25, "speaker" if way == "chat" else "m")
    answers = [ask() for _ in range(16)]
    assert all(answers[start : start + 4].count(2) == 1 for start in range(13))


@pytest.mark.parametrize("way", WAYS)
def test_a_header_or_a_parameter_keeps_its_version(divided, request, way):
    ask: Ask = request.getfixturevalue(way)
    divided.divide(50, "speaker" if way == "chat" else "m")
    for key in ("headers", "user"):
        users = [f"user-{number}" for number in range(8)]
        sent = {user: {"headers": {"X-User": user}} if key == "headers" else {"user": user} for user in users}
        answers = {user: {ask(**sent[user]) for _ in range(3)} for user in users}
        assert {len(versions) for versions in answers.values()} == {1}
        assert set().union(*answers.values()) == {1, 2}


def test_a_user_has_one_version_over_all_protocols(divided, http_json, http_binary, grpc, generate):
    divided.divide(50)
    for number in range(6):
        headers = {"x-user": f"user-{number}"}
        assert len({ask(headers=headers) for ask in (http_json, http_binary, grpc, generate)}) == 1


def test_a_connection_and_a_stream_that_stay_follow_a_change_with_their_next_request(divided, http_json):
    divided.divide(0)
    results: Queue[int] = Queue()
    with triton_grpc.InferenceServerClient(divided.address("GRPCInference")) as client:
        client.start_stream(lambda result, error: results.put(int(result.get_response().model_version)))
        tensor = triton_grpc.InferInput("X", [1], "INT32").set_data_from_numpy(np.array([1], np.int32))
        for percent, only in ((0, False), (100, True), (0, False), (100, False), (0, True)):
            divided.divide(percent, only=only)
            version = 2 if percent else 1
            assert http_json() == version
            client.async_stream_infer("m", [tensor])
            assert results.get(timeout=30) == version


def test_weights_change_under_load_and_no_request_is_lost(divided, http_binary):
    divided.divide(0)
    before = counters(divided)
    stop = threading.Event()
    answers: list[int] = []
    failures: list[BaseException] = []

    def client() -> None:
        connection = triton_http.InferenceServerClient(divided.address("HTTP"))
        tensor = triton_http.InferInput("X", [1], "INT32").set_data_from_numpy(np.array([1], np.int32))
        try:
            while not stop.is_set():
                answers.append(int(connection.infer("m", [tensor]).as_numpy("Y")[0]))
        except BaseException as error:
            failures.append(error)
        finally:
            connection.close()

    clients = [threading.Thread(target=client) for _ in range(4)]
    for thread in clients:
        thread.start()
    for percent in (5, 30, 50, 95, 100, 0):
        divided.divide(percent)
        begun = len(answers)
        wait_until(lambda begun=begun: bool(failures) or len(answers) >= begun + 100)
    back = len(answers)
    wait_until(lambda: bool(failures) or len(answers) >= back + 100)
    stop.set()
    for thread in clients:
        thread.join()
    assert not failures
    assert set(answers) == {1, 2}
    assert 2 not in answers[back:]
    sent = counters(divided) - before
    assert sent == Counter(answers)
    assert divided.serving.text.count("loading: m:") == 2, "each version was loaded once"


def counters(divided: DividingServer) -> Counter[int]:
    """Return the requests that each version was sent by weight."""
    lines = [
        line for line in divided.serving.metrics().splitlines() if line.startswith("argosy_version_requests_total")
    ]
    counts = {version: f'{{model="m",version="{version}",by="weight"}} ' for version in (1, 2)}
    return Counter(
        {version: int(line.split()[-1]) for version, labels in counts.items() for line in lines if labels in line}
    )


def test_the_model_is_described_by_the_version_of_the_highest_weight(divided):
    for percent, version in ((40, "1"), (60, "2")):
        divided.divide(percent)
        metadata = json.loads(divided.serving.ask("/v2/models/m")[1])
        assert metadata["versions"] == ["1", "2"]
        assert divided.serving.status("/v2/models/m/ready") == 200
        config = json.loads(divided.serving.ask("/v2/models/m/config")[1])
        declared = json.loads(config["parameters"]["version_traffic"]["string_value"])
        assert declared["weights"] == {"1": 1_000_000 - percent * 10_000, "2": percent * 10_000}
        index = json.loads(divided.serving.ask("/v2/repository/index", {})[1])
        states = {entry["version"]: entry["state"] for entry in index if entry["name"] == "m"}
        assert states == {"1": "READY", "2": "READY"}
        weights = [line for line in divided.serving.metrics().splitlines() if 'weight{model="m"' in line]
        assert max(weights, key=lambda line: float(line.split()[-1])).count(f'version="{version}"') == 1


def test_class_labels_are_those_of_the_version_that_answers(divided):
    divided.divide(50, "judge")
    tensor = {"name": "X", "datatype": "INT32", "shape": [1], "data": [1]}
    body = {"inputs": [tensor], "outputs": [{"name": "SCORES", "parameters": {"classification": 1}}]}
    with triton_grpc.InferenceServerClient(divided.address("GRPCInference")) as client:
        sent = triton_grpc.InferInput("X", [1], "INT32").set_data_from_numpy(np.array([1], np.int32))
        outputs = [triton_grpc.InferRequestedOutput("SCORES", class_count=1)]
        labels = set()
        for _ in range(2):
            answer = json.loads(divided.serving.ask("/v2/models/judge/infer", body)[1])
            labels.add((answer["model_version"], answer["outputs"][0]["data"][0].split(":")[2]))
            called = client.infer("judge", [sent], outputs=outputs)
            label = called.as_numpy("SCORES")[0].decode().split(":")[2]
            labels.add((called.get_response().model_version, label))
    assert labels == {("1", "of version 1"), ("2", "of version 2")}


def test_a_stream_has_all_responses_of_a_version_that_is_decoupled_and_one_of_the_other(divided):
    divided.divide(50, "either")
    results: Queue[int] = Queue()
    with triton_grpc.InferenceServerClient(divided.address("GRPCInference")) as client:
        client.start_stream(lambda result, error: results.put(int(result.get_response().model_version)))
        tensor = triton_grpc.InferInput("X", [1], "INT32").set_data_from_numpy(np.array([1], np.int32))
        for _ in range(4):
            client.async_stream_infer("either", [tensor])
        client.stop_stream()
    assert Counter(results.queue) == {1: 2, 2: 4}
