"""A step of a rollout divides a model's requests exactly, whatever they come by: HTTP, gRPC, OpenAI's API, or BLS."""

import json
import urllib.request
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import tritonclient.grpc as triton_grpc
import yaml
from e2e.parts.up import Up
from tests.serve.conftest import SPEAKER

pytestmark = pytest.mark.timeout(240)

CALLER = """
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        return [self._answer(request) for request in requests]

    def _answer(self, request):
        question = pb_utils.get_input_tensor_by_name(request, "QUESTION")
        call = pb_utils.InferenceRequest(model_name="speaker", inputs=[question], requested_output_names=["ANSWER"])
        answer = call.exec()
        if answer.has_error():
            return pb_utils.InferenceResponse(error=answer.error())
        return pb_utils.InferenceResponse([pb_utils.get_output_tensor_by_name(answer, "ANSWER")])
"""
MODEL = {
    "poolRef": {"name": "laptop"},
    "modelFormat": {"name": "python"},
    "inputs": [{"name": "QUESTION", "dataType": "TYPE_STRING", "dims": [1]}],
    "outputs": [{"name": "ANSWER", "dataType": "TYPE_STRING", "dims": [1]}],
}
STEP = {"steps": [{"traffic": "25%", "pause": "1h"}], "analysis": {"warmUp": "0s", "timeout": "2h"}}
ROUNDS = 4
"""In each, every way has four requests."""


def declare(up: Up, version: int) -> None:
    """Declare a version of the model, and a model that calls it."""
    api = {"apiVersion": "argosy.dev/v1alpha1"}
    speaker = {"version": version, "storageUri": "file:speaker", "rollout": STEP, "chat": CHAT, **MODEL}
    models = {"speaker": speaker, "caller": {"version": 1, "storageUri": "file:caller", **MODEL}}
    resources: list[dict[str, Any]] = [{**api, "kind": "ServingPool", "metadata": {"name": "laptop"}}]
    resources += [
        {**api, "kind": "InferenceModel", "metadata": {"name": name}, "spec": spec} for name, spec in models.items()
    ]
    up.declare(yaml.safe_dump_all(resources))


CHAT = {"prompt": "QUESTION", "text": "ANSWER"}


def phase(up: Up) -> str:
    """Return the phase of the rollout."""
    return str(up.status("speaker").get("rollout", {}).get("phase"))


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """Yield a started `argosy up` on which a quarter of the model's requests are for version 2."""
    started = Up(tmp_path_factory.mktemp("traffic"))
    for name, source in {"speaker": SPEAKER, "caller": CALLER}.items():
        (started.manifests / name).mkdir(parents=True)
        (started.manifests / name / "model.py").write_text(source)
    declare(started, 1)
    started.start()
    try:
        started.until(
            "version 1", lambda: phase(started) == "Stable" and bool(started.status("caller").get("availableReplicas"))
        )
        declare(started, 2)
        started.until("the step", lambda: phase(started) == "Stepping")
        yield started
    finally:
        started.stop()


def posted(up: Up, path: str, body: dict[str, Any]) -> Any:
    """Return the answer to a JSON body."""
    with urllib.request.urlopen(f"http://127.0.0.1:{up.http}{path}", json.dumps(body).encode(), timeout=30) as answer:
        return json.loads(answer.read())


def by_v2(up: Up, model: str = "speaker") -> int:
    """Return the version that answers a request of the V2 protocol."""
    tensor = {"name": "QUESTION", "datatype": "BYTES", "shape": [1], "data": ["?"]}
    return int(posted(up, f"/v2/models/{model}/infer", {"inputs": [tensor]})["outputs"][0]["data"][0])


def by_grpc(up: Up) -> int:
    """Return the version that answers a call over gRPC."""
    with triton_grpc.InferenceServerClient(f"127.0.0.1:{up.grpc}") as client:
        tensor = triton_grpc.InferInput("QUESTION", [1], "BYTES").set_data_from_numpy(np.array([b"?"], object))
        return int(client.infer("speaker", [tensor]).as_numpy("ANSWER")[0])


def by_chat(up: Up) -> int:
    """Return the version that answers a chat of OpenAI's API."""
    body = {"model": "speaker", "messages": [{"role": "user", "content": "?"}]}
    return int(posted(up, "/v1/chat/completions", body)["choices"][0]["message"]["content"])


def by_bls(up: Up) -> int:
    """Return the version that a Python model's call reaches."""
    return by_v2(up, "caller")


def test_a_step_divides_all_ways_alike(up: Up) -> None:
    ways = (by_v2, by_grpc, by_chat, by_bls)
    up.until("the weights", lambda: 2 in [by_v2(up) for _ in range(4)])
    for way in ways:
        answers = Counter(way(up) for _ in range(4 * ROUNDS))
        assert answers == {1: 3 * ROUNDS, 2: ROUNDS}, way
    together = [way(up) for _ in range(ROUNDS) for way in ways]
    assert Counter(together) == {1: 3 * ROUNDS, 2: ROUNDS}, "all ways share one order"
