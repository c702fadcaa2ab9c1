"""`argosy up` under a real load: more instances of a model that requests wait for, and none of them lost meanwhile."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from e2e.parts.up import Up

pytestmark = pytest.mark.timeout(240)

ROOT = Path(__file__).parents[2]
MANIFESTS = """
apiVersion: argosy.dev/v1alpha1
kind: ServingPool
metadata: {name: laptop}
---
apiVersion: argosy.dev/v1alpha1
kind: InferenceModel
metadata: {name: work}
spec:
  poolRef: {name: laptop}
  modelFormat: {name: python}
  version: 1
  storageUri: file:work
  inputs: [{name: X, dataType: TYPE_INT32, dims: [1]}]
  outputs: [{name: VERSION, dataType: TYPE_INT32, dims: [1]}]
  slo: {latency: {p99: 300ms}}
  scaling: {maxInstances: 4}
  config: {parameters: {WORK_S: {string_value: "0.1"}}}
"""
WORKERS = 8
"""Each asks again once it was answered: with one instance they wait eight times as long as a request takes."""


@pytest.fixture
def up(tmp_path: Path) -> Iterator[Up]:
    started = Up(tmp_path)
    (started.manifests / "work").mkdir(parents=True)
    (started.manifests / "all.yaml").write_text(MANIFESTS)
    (started.manifests / "work/model.py").write_text((ROOT / "e2e/models/version/model.py").read_text())
    try:
        started.start()
        started.until("Ready", lambda: "Ready=True (Serving)" in started.log.read_text())
        yield started
    finally:
        started.stop()


def scaling(up: Up) -> dict[str, Any]:
    status: dict[str, Any] = up.status("work").get("scaling", {})
    return status


def test_instances_follow_the_load_and_the_status_says_why(up: Up) -> None:
    assert scaling(up)["instances"] == 1
    stop, answers, errors = threading.Event(), list[int](), list[str]()

    def work() -> None:
        while not stop.is_set():
            try:
                answers.append(up.ask("work")[0])
            except OSError as error:
                errors.append(str(error))

    threads = [threading.Thread(target=work) for _ in range(WORKERS)]
    for thread in threads:
        thread.start()
    try:
        up.until("more instances", lambda: scaling(up).get("instances", 1) > 1)
        up.until("the sentence in the log", lambda: "InferenceModel work: Goes from 1 to" in up.log.read_text())
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert errors == []
    assert set(answers) == {200}
    newest = scaling(up)["history"][-1]
    assert newest["formerInstances"] == 1
    assert "p99 300 ms" in newest["message"]
    ready = [line for line in up.log.read_text().splitlines() if line.startswith("InferenceModel work v1: Ready=False")]
    assert not any("former one goes on serving" in line for line in ready)  # it was Ready all the while
