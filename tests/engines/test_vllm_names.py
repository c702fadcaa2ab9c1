"""The stand-in of vLLM has the names, the parameters and the exceptions of the real one."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.runtime.backends.vllm.conftest import STANDINS

pytestmark = pytest.mark.timeout(1200)  # the first test installs the environment and starts the engine

SCRIPT = Path(__file__).with_name("vllm_names.py")


def names(*command: str) -> dict[str, Any]:
    """Return what the script prints."""
    variables = {**os.environ, "VLLM_LOGGING_LEVEL": "ERROR", "PYTHONPATH": ""}
    done = subprocess.run([*command], env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    read: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return read


@pytest.fixture(scope="module")
def real(vllm_environment: Path) -> dict[str, Any]:
    return names(str(vllm_environment / "bin/python"), str(SCRIPT))


@pytest.fixture(scope="module")
def standin() -> dict[str, Any]:
    return names(sys.executable, str(SCRIPT), str(STANDINS))


def test_functions_have_the_same_parameters(real, standin):
    for name, parameters in standin.items():
        if isinstance(parameters, dict):
            assert parameters == real[name], name


def test_the_fields_of_classes_are_real(real, standin):
    for name in ("AsyncEngineArgs", "SamplingParams", "PoolingParams", "LoRARequest", "StructuredOutputsParams"):
        assert set(standin[name]) <= set(real[name]), name
    for name in ("RequestOutputKind", "properties", "exceptions"):
        assert standin[name] == real[name], name
