"""`argosy up` releases a new version in steps: weights in the server, promotion, a bad version is taken back."""

import threading
from collections import Counter
from collections.abc import Iterator

import pytest
from e2e.parts.up import Up
from e2e.parts.versioned import VersionedModel

pytestmark = pytest.mark.timeout(600)

ROLLOUT = """{
    steps: [{traffic: 20%, pause: 1s}, {traffic: 50%, pause: 1s}],
    analysis: {warmUp: 0s, latency: {p50: 50}, errorRate: {acceptable: 1%, unacceptable: 20%}}}
"""
BROKEN, FAILING = 3, 4
"""A version that does not load, and one that fails each request."""


class Traffic:
    """Clients that ask again once they were answered, and what they were answered: versions, or "error"."""

    def __init__(self, up: Up) -> None:
        self._up, self._stop = up, threading.Event()
        self.answers: list[int | str] = []
        self._threads = [threading.Thread(target=self._work) for _ in range(2)]

    def __enter__(self) -> "Traffic":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def since(self, begin: int) -> Counter[int | str]:
        """Return the answers from the one of this number on, counted."""
        return Counter(self.answers[begin:])

    def _work(self) -> None:
        while not self._stop.is_set():
            status, answer = self._up.ask("work")
            self.answers.append(answer["outputs"][0]["data"][0] if status == 200 else "error")


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


def test_a_version_that_does_not_load_is_held_and_meets_no_request(model: VersionedModel) -> None:
    with Traffic(model.up) as traffic:
        model.declare(BROKEN, load='raise RuntimeError("no weights")')
        model.until("Held", 1)
    assert traffic.since(0).keys() == {1}
    (held,) = model.rollout["held"]
    assert held["version"] == BROKEN
    assert "no weights" in held["message"]


def test_a_good_version_takes_over_step_by_step_without_a_failed_request(model: VersionedModel) -> None:
    with Traffic(model.up) as traffic:
        model.declare(2)
        model.until("Promoted", 2)
        promoted = len(traffic.answers)
        model.up.until("further answers", lambda: len(traffic.answers) > promoted + 50)
    assert traffic.since(0).keys() == {1, 2}
    assert traffic.since(promoted + 2).keys() == {2}
    assert model.loads == ["1 as 1", "2 as 2"], "each with its own configuration, and once"


def test_a_version_that_fails_is_taken_back_and_met_few_requests(model: VersionedModel) -> None:
    with Traffic(model.up) as traffic:
        model.declare(FAILING, answer='raise RuntimeError("it fails")')
        model.until("Held", 2)
        back = len(traffic.answers)
        model.up.until("further answers", lambda: len(traffic.answers) > back + 50)
    answers = traffic.since(0)
    assert answers.keys() == {2, "error"}
    assert traffic.since(back).keys() == {2}
    assert answers["error"] <= 0.2 * answers.total() + 1


def test_a_killed_argosy_goes_on(model: VersionedModel) -> None:
    model.declare(5)
    model.up.until("the first step", lambda: model.rollout.get("phase") == "Stepping")
    model.up.kill()
    model.up.start()
    with Traffic(model.up) as traffic:
        model.until("Promoted", 5)
    assert "error" not in traffic.since(0)


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
