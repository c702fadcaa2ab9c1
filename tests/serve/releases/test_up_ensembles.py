"""`argosy up` releases an ensemble as one unit: no request runs versions of two revisions of it."""

from collections.abc import Iterator
from typing import Any

import pytest
from e2e.cluster.background import Background
from e2e.parts.up import Up
from tests.serve.releases.watch import Watch, became_ready_once, exactly_divided

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
        FAILS
        return [
            pb_utils.InferenceResponse(
                [pb_utils.Tensor("Y", np.append(pb_utils.get_input_tensor_by_name(one, "X").as_numpy(), self._version))]
            )
            for one in requests
        ]
"""
FAILING = 4
"""The version that fails each request."""


class Clients(Background):
    """Clients that ask again once they were answered, and the versions of the steps that answered each."""

    def __init__(self, up: Up) -> None:
        super().__init__(self._work, self._work)
        self._up, self.answers = up, list[tuple[int, ...] | str]()

    def _work(self) -> None:
        while not self.stopping.is_set():
            status, answer = self._up.ask("work")
            self.answers.append(tuple(answer["outputs"][0]["data"][1:]) if status == 200 else str(answer))


def declare(up: Up, tokenizer: int, language: int) -> None:
    """Declare the ensemble with versions of its models."""
    members = MEMBER.format(name="tokenizer", version=tokenizer) + MEMBER.format(name="language", version=language)
    up.declare(UNIT + members)


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """Yield a started `argosy up` with an ensemble that runs version 1 of both models."""
    started = Up(tmp_path_factory.mktemp("ensembles"))
    for version in (1, 2, 3, FAILING):
        (started.manifests / f"v{version}").mkdir(parents=True)
        fails = 'raise RuntimeError("it fails")' if version == FAILING else "pass"
        (started.manifests / f"v{version}" / "model.py").write_text(MODEL.replace("FAILS", fails))
    declare(started, 1, 1)
    started.start()
    try:
        started.until("the ensemble is stable", lambda: rollout(started).get("phase") == "Stable")
        yield started
    finally:
        started.stop()


def rollout(up: Up) -> dict[str, Any]:
    """Return the rollout in the status."""
    result: dict[str, Any] = up.status("work").get("rollout", {})
    return result


def stable(up: Up) -> tuple[int, ...]:
    """Return the versions of the steps of the stable revision, in the order of the steps."""
    versions = {step["model"]: step["version"] for step in rollout(up).get("stable", {}).get("steps", ())}
    return tuple(versions.get(model, 0) for model in ("tokenizer", "language"))


def released(up: Up, tokenizer: int, language: int) -> Clients:
    """Declare versions of the models under load. Return the answers until some after their promotion."""
    with Watch(up) as watch, Clients(up) as clients:
        declare(up, tokenizer, language)
        ended = ("Promoted", (tokenizer, language))
        up.until(f"{ended}; {rollout(up)}", lambda: (rollout(up).get("phase"), stable(up)) == ended)
        begin = len(clients.answers)
        up.until("further answers", lambda: len(clients.answers) > begin + 20)
    assert set(clients.answers[begin + 2 :]) == {(tokenizer, language)}
    exactly_divided(watch)
    became_ready_once(watch)
    return clients


def test_both_steps_change_together_in_every_request(up: Up) -> None:
    assert set(released(up, 2, 2).answers) == {(1, 1), (2, 2)}


def test_a_change_of_one_step_makes_a_revision_of_the_ensemble(up: Up) -> None:
    assert set(released(up, 3, 2).answers) == {(2, 2), (3, 2)}
    assert up.status("work")["activeVersion"] == 3, "the third revision, which no manifest numbers"


def test_a_step_that_fails_takes_the_ensemble_back(up: Up) -> None:
    with Watch(up) as watch, Clients(up) as clients:
        declare(up, 2, FAILING)
        up.until(f"held; {rollout(up)}", lambda: rollout(up).get("phase") == "Held")
        begin = len(clients.answers)
        up.until("further answers", lambda: len(clients.answers) > begin + 20)
    answers = [answer for answer in clients.answers if isinstance(answer, tuple)]
    assert set(answers) == {(3, 2)}, "the tokenizer of the revision that fails answers nothing"
    assert set(clients.answers[begin + 2 :]) == {(3, 2)}
    assert 0 < len(clients.answers) - len(answers) <= 0.2 * len(clients.answers) + 1
    exactly_divided(watch)
    assert stable(up) == (3, 2)
