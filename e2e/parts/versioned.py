"""A model of which a started `argosy up` releases versions: each answers with its number, fails, or does not load."""

from textwrap import indent
from typing import Any

from e2e.parts.up import Up

NAME = "work"
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
  version: <version>
  storageUri: file:v<version>
  inputs: [{name: X, dataType: TYPE_INT32, dims: [1]}]
  outputs: [{name: VERSION, dataType: TYPE_INT32, dims: [1]}]
  config: {parameters: {release: {string_value: "<version>"}}}
  rollout: <rollout>
"""
MODEL = """
import json
import random

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        <load>
        release = json.loads(args["model_config"])["parameters"]["release"]["string_value"]
        self._version = np.array([int(release)], np.int32)
        with open("<loads>", "a") as loads:
            loads.write(args["model_version"] + " as " + release + "\\n")

    def execute(self, requests):
        return [self._answer() for _ in requests]

    def _answer(self):
        <answer>
        return pb_utils.InferenceResponse([pb_utils.Tensor("VERSION", self._version)])
"""


class VersionedModel:
    """The model `work` on an `argosy up`. A version is released as `rollout` says, which is YAML on one line."""

    def __init__(self, up: Up, rollout: str) -> None:
        self.up, self._rollout = up, rollout
        self._loads = up.manifests.parent / "loads"

    def declare(self, version: int, load: str = "pass", answer: str = "pass") -> None:
        """Declare a version, as a commit does. `load` has the statements that run before it is loaded, and `answer`
        those before each answer; both may raise. A version whose files exist keeps them.
        """
        files = self.up.manifests / f"v{version}"
        if not files.exists():
            files.mkdir(parents=True)
            names = {"<load>": _in_method(load), "<answer>": _in_method(answer), "<loads>": str(self._loads)}
            (files / "model.py").write_text(_filled(MODEL, names))
        self.up.declare(_filled(MANIFESTS, {"<version>": str(version), "<rollout>": self._rollout}))

    @property
    def loads(self) -> list[str]:
        """Which versions were loaded, in order, each with the version whose configuration it got."""
        return self._loads.read_text().splitlines()

    @property
    def rollout(self) -> dict[str, Any]:
        """The rollout in the status; empty before there is one."""
        rollout: dict[str, Any] = self.up.status(NAME).get("rollout", {})
        return rollout

    @property
    def stable(self) -> int:
        """The stable version; 0 while there is none."""
        return int(self.rollout.get("stable", {}).get("version", 0))

    def until(self, phase: str, stable: int) -> None:
        """Wait until a phase is reached with this stable version."""
        what = f"{phase} with version {stable}; {self.rollout}"
        self.up.until(what, lambda: self.rollout.get("phase") == phase and self.stable == stable)


def _in_method(statements: str) -> str:
    return indent(statements.strip(), 8 * " ").lstrip()


def _filled(text: str, values: dict[str, str]) -> str:
    for name, value in values.items():
        text = text.replace(name, value)
    return text
