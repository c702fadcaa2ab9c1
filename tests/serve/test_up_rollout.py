"""`argosy up` releases versions with configurations of their own, and compares their answers.

What clients meet of good and bad ones is in `releases/`.
"""

from collections import Counter
from collections.abc import Iterator

import pytest
from e2e.parts.up import Up
from e2e.parts.versioned import VersionedModel

pytestmark = pytest.mark.timeout(600)

ROLLOUT = """{
    steps: [{traffic: 20%, pause: 0s}, {traffic: 50%, pause: 0s}],
    analysis: {warmUp: 0s, latency: {p50: 50}, errorRate: {acceptable: 1%, unacceptable: 20%}}}
"""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[VersionedModel]:
    """Yield a model on a started `argosy up`, whose version 1 serves."""
    started = VersionedModel(Up(tmp_path_factory.mktemp("release")), ROLLOUT)
    started.declare(1)
    started.up.start()
    try:
        started.until("Stable", 1)
        yield started
    finally:
        started.up.stop()


def test_a_version_is_loaded_once_with_a_configuration_of_its_own(model: VersionedModel) -> None:
    model.declare(2)
    answers = Counter[int]()

    def is_promoted() -> bool:
        answers[model.up.ask("work")[1]["outputs"][0]["data"][0]] += 1
        return bool(model.rollout.get("phase") == "Promoted")

    model.up.until("version 2 to be promoted", is_promoted)
    assert answers.keys() == {1, 2}
    assert model.loads == ["1 as 1", "2 as 2"]


SCORE = """
apiVersion: argosy.dev/v1alpha1
kind: InferenceModel
metadata: {{name: score}}
spec:
  poolRef: {{name: laptop}}
  modelFormat: {{name: python}}
  version: {version}
  storageUri: file:score{version}
  inputs: [{{name: X, dataType: TYPE_INT32, dims: [1]}}]
  outputs: [{{name: Y, dataType: TYPE_FP32, dims: [1]}}]
  rollout:
    shadow: {{traffic: 100%, duration: 1s, maxDifferent: 50%, tolerances: [{{output: Y, absolute: 0.01}}]}}
    analysis: {{warmUp: 0s, latency: {{p50: 50}}, errorRate: {{acceptable: 1%, unacceptable: 20%}}}}
"""
SCORER = """
import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        return [pb_utils.InferenceResponse([pb_utils.Tensor("Y", np.array([{score}], np.float32))]) for _ in requests]
"""
SCORES = {1: 0.5, 2: 0.501, 3: 0.8}
"""By version: the second one answers within the tolerance, the third one differently."""


def declare_score(up: Up, version: int) -> None:
    """Declare a version of the model that is shadowed."""
    files = up.manifests / f"score{version}"
    files.mkdir(exist_ok=True)
    (files / "model.py").write_text(SCORER.format(score=SCORES[version]))
    (up.manifests / "score.yaml").write_text(SCORE.format(version=version))


def scores_until(up: Up, phase: str, stable: int) -> set[float]:
    """Return the answers of a client that asks until a phase is reached with this stable version."""
    answers: set[float] = set()

    def reached() -> bool:
        status, answer = up.ask("score")
        if status == 200:
            answers.add(round(answer["outputs"][0]["data"][0], 3))
        rollout = up.status("score").get("rollout", {})
        return rollout.get("phase") == phase and rollout.get("stable", {}).get("version") == stable

    up.until(f"{phase} with version {stable} of score", reached)
    return answers


def test_the_shadow_passes_a_version_within_the_tolerance_and_stops_another_before_any_client_met_it(
    model: VersionedModel,
) -> None:
    up = model.up
    declare_score(up, 1)
    assert scores_until(up, "Stable", 1) == {0.5}
    declare_score(up, 2)
    assert 0.5 in scores_until(up, "Promoted", 2)
    declare_score(up, 3)
    assert scores_until(up, "Held", 2) == {0.501}
    rollout = up.status("score")["rollout"]
    (held,) = rollout["held"]
    assert (held["version"], held["reason"]) == (3, "DifferentAnswers")
    assert "answers differ, most in Y of request shadow-" in held["message"]
    shadow = rollout["shadow"]
    assert shadow["different"] > 0
    (output,) = shadow["outputs"]
    assert output["largestDifference"] == pytest.approx(0.299, abs=0.001)
    assert output["examples"][0]["kind"] == "Value"
