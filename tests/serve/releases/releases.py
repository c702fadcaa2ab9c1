"""A model whose versions are released one after the other on a started `argosy up`."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import psutil
import yaml
from e2e.parts.up import Up
from tests.serve.releases.load import RATE, Load

MODEL = """
import json
import os
import time

import numpy as np
import triton_python_backend_utils as pb_utils

SETTINGS = json.loads('''@SETTINGS@''')


def wait_for(file):
    while file and not os.path.exists(file):
        time.sleep(0.01)


class TritonPythonModel:
    def initialize(self, args):
        wait_for(SETTINGS.get("loads_at"))
        if "broken" in SETTINGS:
            raise RuntimeError("no weights")
        self._answered = 0

    def execute(self, requests):
        if SETTINGS.get("crashes"):
            os._exit(1)
        if "raises" in SETTINGS:
            raise RuntimeError(SETTINGS["raises"])
        wait_for(SETTINGS.get("hangs_until"))
        time.sleep(SETTINGS.get("work_s", 0.005))
        return [self._answer() for _ in requests]

    def _answer(self):
        every = SETTINGS.get("fails_every")
        self._answered += 1
        if every and self._answered % every == (every + 1) // 2:
            return pb_utils.InferenceResponse(error=pb_utils.TritonError(f"build {SETTINGS['build']} fails"))
        build = pb_utils.Tensor("BUILD", np.array([[SETTINGS["build"]]], np.int32))
        score = pb_utils.Tensor("SCORE", np.array([[SETTINGS.get("score", 0.5)]], np.float32))
        return pb_utils.InferenceResponse([build, score])

    def finalize(self):
        wait_for(SETTINGS.get("unloads_at"))
"""
POOL = {"apiVersion": "argosy.dev/v1alpha1", "kind": "ServingPool", "metadata": {"name": "laptop"}}
QUICK = {"errorRate": {"acceptable": "1%", "unacceptable": "20%"}, "latency": {"p50": 50}, "warmUp": "0s"}
"""An analysis that some tens of requests decide."""
STEPS = [{"traffic": "20%", "pause": "0s"}, {"traffic": "50%", "pause": "0s"}]
TENSORS = {
    "inputs": [{"name": "X", "dataType": "TYPE_INT32", "dims": [1]}],
    "outputs": [
        {"name": "BUILD", "dataType": "TYPE_INT32", "dims": [1]},
        {"name": "SCORE", "dataType": "TYPE_FP32", "dims": [1]},
    ],
}


class Releases:
    """The model `work`, in a pool with these settings. A `build` is one folder of files, numbered as declared."""

    def __init__(self, up: Up, pool: Mapping[str, Any] | None = None) -> None:
        self.up, self.build, self.pool = up, 0, pool or {}

    def declare(self, version: int, rollout: Mapping[str, Any] | None = None, **settings: Any) -> int:
        """Declare a version with files of its own, which behave as `settings` say. Return their build."""
        self.build += 1
        folder = self.up.manifests / f"build{self.build}"
        folder.mkdir(parents=True)
        text = json.dumps({"build": self.build, **settings})
        (folder / "model.py").write_text(MODEL.replace("@SETTINGS@", text))
        self.redeclare(version, self.build, rollout)
        return self.build

    def redeclare(self, version: int, build: int, rollout: Mapping[str, Any] | None = None) -> None:
        """Declare a version with the files of an earlier build."""
        steps = {"steps": STEPS, "analysis": QUICK}
        spec = {
            "poolRef": {"name": "laptop"},
            "modelFormat": {"name": "python"},
            "version": version,
            "storageUri": f"file:build{build}",
            "maxBatchSize": 64,
            "batching": {},
            "config": {"parameters": {"OF": {"string_value": self._setting(build)}}},
            **TENSORS,
            "rollout": {**steps, **(rollout or {})},
        }
        model = {**POOL, "kind": "InferenceModel", "metadata": {"name": "work"}, "spec": spec}
        self.write("all.yaml", {**POOL, "spec": dict(self.pool)}, model)

    def _setting(self, build: int) -> str:
        """Return what the configuration says of a build; NVIDIA's server has one configuration for all versions."""
        return "any build" if self.pool.get("runtime") else f"build {build}"

    def write(self, file: str, *resources: Mapping[str, Any]) -> None:
        """Replace a manifest by these resources."""
        self.up.declare(yaml.safe_dump_all(resources), file)

    @property
    def rollout(self) -> dict[str, Any]:
        """The rollout in the status."""
        rollout: dict[str, Any] = self.up.status("work").get("rollout", {})
        return rollout

    def phase(self, name: str, version: int, part: str = "candidate") -> None:
        """Wait until a phase is reached in which this version is the candidate, or another `part` of the status."""

        def reached() -> bool:
            rollout = self.rollout
            entries = rollout.get(part, {})
            versions = [one["version"] for one in (entries if isinstance(entries, list) else [entries]) if one]
            return rollout.get("phase") == name and version in versions

        self.up.until(f"{name} with {part} {version}", reached)

    def promoted(self, version: int) -> None:
        """Wait until a version is promoted."""
        self.phase("Promoted", version, "stable")

    def held(self, version: int) -> dict[str, Any]:
        """Wait until a version is held, and return what the status says of it."""
        self.phase("Held", version, "held")
        return next(entry for entry in self.rollout["held"] if entry["version"] == version)

    def restarted(self) -> None:
        """Wait until the `argosy up` that runs now has written its first status."""

        def wrote() -> bool:
            written = json.loads((self.up.state / "status.json").read_text())
            return self.up.process is not None and bool(written["pid"] == self.up.process.pid)

        self.up.until("a status of the process that runs now", wrote)

    def kill_server(self) -> None:
        """Kill the server, which `argosy up` starts again."""
        (record,) = self.up.state.glob("servers/*/process.json")
        psutil.Process(int(json.loads(record.read_text())["pid"])).kill()

    def load(self, rate: float = RATE, timeout_s: float = 60.0) -> Load:
        """Return a load on the model, which begins with its block."""
        return Load(f"http://127.0.0.1:{self.up.http}/v2/models/work/infer", rate, timeout_s)


@contextmanager
def started(
    up: Up, pool: Mapping[str, Any] | None = None, rollout: Mapping[str, Any] | None = None
) -> Iterator[Releases]:
    """Yield the model on a started `argosy up`, with version 1 stable."""
    releases = Releases(up, pool)
    releases.up.manifests.mkdir(parents=True)
    releases.declare(1, rollout)
    releases.up.start()
    try:
        releases.phase("Stable", 1, "stable")
        yield releases
    finally:
        releases.up.stop()
