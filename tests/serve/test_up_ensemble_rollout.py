"""`argosy up` releases an ensemble as one unit: no request runs versions of two revisions of it."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from e2e.parts.up import Up

pytestmark = pytest.mark.timeout(600)

MEMBER = """
apiVersion: argosy.dev/v1alpha1
kind: InferenceModel
metadata: {{name: {name}}}
spec:
  poolRef: {{name: laptop}}
  modelFormat: {{name: python}}
  version: {version}
  storageUri: file:v{version}
  inputs: [{{name: X, dataType: TYPE_INT32, dims: [-1]}}]
  outputs: [{{name: Y, dataType: TYPE_INT32, dims: [-1]}}]
---
"""
UNIT = """
apiVersion: argosy.dev/v1alpha1
kind: ServingPool
metadata: {name: laptop}
---
apiVersion: argosy.dev/v1alpha1
kind: Ensemble
metadata: {name: work}
spec:
  poolRef: {name: laptop}
  inputs: [{name: X, dataType: TYPE_INT32, dims: [-1]}]
  outputs: [{name: Y, dataType: TYPE_INT32, dims: [-1]}]
  steps:
  - {model: tokenizer, inputs: {X: X}, outputs: {Y: tokens}}
  - {model: language, inputs: {X: tokens}, outputs: {Y: Y}}
  rollout:
    steps: [{traffic: 20%, pause: 1s}, {traffic: 50%, pause: 1s}]
    analysis: {warmUp: 0s, latency: {p50: 50}, errorRate: {acceptable: 1%, unacceptable: 20%}}
---
"""
MODEL = """
import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        self._version = np.array([int(args["model_version"])], np.int32)

    def execute(self, requests):
        return [
            pb_utils.InferenceResponse(
                [pb_utils.Tensor("Y", np.append(pb_utils.get_input_tensor_by_name(one, "X").as_numpy(), self._version))]
            )
            for one in requests
        ]
"""


class Clients:
    """Clients that ask again once they were answered, and the versions of the steps that answered each."""

    def __init__(self, up: Up) -> None:
        self._up, self._stop, self.answers = up, threading.Event(), list[tuple[int, ...] | str]()
        self._threads = [threading.Thread(target=self._work) for _ in range(2)]

    def __enter__(self) -> "Clients":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _work(self) -> None:
        while not self._stop.is_set():
            status, answer = self._up.ask("work")
            self.answers.append(tuple(answer["outputs"][0]["data"][1:]) if status == 200 else str(answer))


def declare(up: Up, version: int) -> None:
    members = (MEMBER.format(name=name, version=version) for name in ("tokenizer", "language"))
    (up.manifests / "all.yaml").write_text(UNIT + "".join(members))


@pytest.fixture
def up(tmp_path: Path) -> Iterator[Up]:
    """Yield a started `argosy up` with an ensemble that runs version 1 of both models."""
    started = Up(tmp_path)
    for version in (1, 2):
        (started.manifests / f"v{version}").mkdir(parents=True)
        (started.manifests / f"v{version}" / "model.py").write_text(MODEL)
    declare(started, 1)
    started.start()
    try:
        started.until("the ensemble is stable", lambda: rollout(started).get("phase") == "Stable")
        yield started
    finally:
        started.stop()


def rollout(up: Up) -> dict[str, object]:
    result: dict[str, object] = up.status("work").get("rollout", {})
    return result


def test_both_steps_change_together_in_every_request(up: Up) -> None:
    with Clients(up) as clients:
        declare(up, 2)
        up.until(f"promoted; {rollout(up)}", lambda: rollout(up).get("phase") == "Promoted")
        begin = len(clients.answers)
        up.until("further answers", lambda: len(clients.answers) > begin + 20)
    assert set(clients.answers) == {(1, 1), (2, 2)}
    assert set(clients.answers[begin + 2 :]) == {(2, 2)}
    assert [step["version"] for step in rollout(up)["stable"]["steps"]] == [2, 2]  # type: ignore[index]
