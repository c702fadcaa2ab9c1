"""The stand-in of TensorRT has no name and no argument that the real bindings have not."""

import inspect
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from e2e.starting import give_up
from tests.peers.cache import PeerUnavailableError
from tests.peers.tensorrt_lean import RELEASES, tensorrt_lean
from tests.runtime.backends.plans import trt

__all__ = ["trt"]

REAL = Path(__file__).with_name("real_names.py")


@pytest.fixture(params=RELEASES)
def real(request: pytest.FixtureRequest) -> Any:
    """Return what the real bindings of a release report of themselves."""
    try:
        folder = tensorrt_lean(request.param)
    except PeerUnavailableError as error:
        give_up(f"TensorRT's lean runtime {request.param} cannot be had from PyPI: {error}")
    done = subprocess.run([sys.executable, str(REAL), str(folder)], capture_output=True, text=True, check=True)
    result = json.loads(done.stdout)
    assert result["version"] == request.param
    return result


def test_every_name_and_argument_is_theirs(trt: Any, real: Any) -> None:
    compared = 0
    for name, methods in real["classes"].items():
        ours = getattr(trt, name)
        for item in [var for var in vars(ours) if not var.startswith("_")]:
            assert item in methods, f"{name}.{item}"
            arguments = methods[item]
            if arguments is not None and inspect.isfunction(getattr(ours, item)):
                assert list(inspect.signature(getattr(ours, item)).parameters)[1:] == arguments, f"{name}.{item}"
                compared += 1
    assert compared >= 15


def test_what_the_backend_sets_and_extends_is_there(real: Any) -> None:
    assert "engine_host_code_allowed" in real["classes"]["Runtime"]
    assert real["severities"] == ["INTERNAL_ERROR", "ERROR", "WARNING"]
    assert real["made"] == [True, True]


def test_every_member_of_an_enumeration_is_theirs(trt: Any, real: Any) -> None:
    trt.become(real["version"])
    shared = [name for name in real["enums"] if hasattr(trt, name)]
    assert {"DataType", "TensorIOMode", "TensorLocation", "ExecutionContextAllocationStrategy"} <= set(shared)
    for name in shared:
        assert set(getattr(trt, name).__members__) <= set(real["enums"][name]), name
