"""Backends are found by name, and what is missing is said with the way out."""

import subprocess
import sys

import pytest
from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime import backends
from argosy_runtime.errors import ErrorKind, ServingError


def test_an_unknown_backend_is_refused_in_tritons_words() -> None:
    with pytest.raises(ServingError) as raised:
        backends.resolve("unheard")
    assert raised.value.kind is ErrorKind.INVALID_ARG
    assert raised.value.message == (
        "unable to find backend library for backend 'unheard', try specifying runtime on the model configuration."
    )


@pytest.mark.parametrize(
    ("backend", "module", "package"), [("onnxruntime", "session", "onnxruntime"), ("fil", "forest", "treelite")]
)
def test_a_missing_package_names_the_extra(
    monkeypatch: pytest.MonkeyPatch, backend: str, module: str, package: str
) -> None:
    monkeypatch.delitem(sys.modules, f"argosy_runtime.backends.{backend}", raising=False)
    monkeypatch.delitem(sys.modules, f"argosy_runtime.backends.{backend}.{module}", raising=False)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ServingError) as raised:
        backends.resolve(backend)
    assert raised.value.kind is ErrorKind.UNAVAILABLE
    assert f"'{package}', which is not installed: pip install 'argosy[{backend}]'" in raised.value.message


@pytest.mark.parametrize("name", ["python", "fil", "onnxruntime", "pytorch", "transformers", "libtorch"])
def test_every_backend_keeps_the_contract(name: str) -> None:
    backend = backends.resolve(name)
    assert callable(backend.complete_config)
    assert callable(backend.load)
    assert ("process" if name in ("python", "fil", "transformers") else "thread") == backends.default_isolation(name)


@pytest.mark.parametrize(
    ("backend", "isolation", "expected"),
    [
        ("pytorch", "", True),
        ("libtorch", "thread", True),
        ("onnxruntime", "", True),
        ("onnxruntime", "process", False),
        ("tensorrt", "", True),
        ("python", "thread", False),
        ("", "", False),
    ],
)
def test_device_memory_is_shared_by_threads_of_frameworks(backend: str, isolation: str, expected: bool) -> None:
    config = ModelConfig(name="m", backend=backend)
    if isolation:
        config.parameters["ISOLATION"].string_value = isolation
    assert backends.takes_device_tensors(config) is expected


def test_asking_where_a_backend_runs_imports_no_framework():
    code = (
        "import sys; from argosy_runtime.backends import default_isolation, names\n"
        "[default_isolation(name) for name in names()]\n"
        "sys.exit(bool({'torch', 'transformers', 'onnxruntime', 'treelite'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
