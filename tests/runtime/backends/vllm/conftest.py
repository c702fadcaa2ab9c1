"""Instances of the backend on a stand-in of vLLM."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol

import pytest
from tests.runtime.backends.conftest import FakeHost, ModelFolder

from argosy_runtime.backends import vllm as backend
from argosy_runtime.modelconfig import parse_text

STANDINS = Path(__file__).parents[3] / "standins/engines"


class OpenInstance(Protocol):
    """Opens an instance with these arguments of the engine; it is closed after the test."""

    def __call__(self, *, parameters: str = "", **arguments: Any) -> Any: ...


@pytest.fixture
def llm_class(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Return the stand-in's `AsyncLLM`."""
    monkeypatch.syspath_prepend(STANDINS)
    from vllm.v1.engine.async_llm import AsyncLLM

    yield AsyncLLM
    for name in [name for name in sys.modules if name == "vllm" or name.startswith("vllm.")]:
        del sys.modules[name]


@pytest.fixture
def folder(tmp_path: Path) -> Callable[..., ModelFolder]:
    """Return `folder(parameters, **arguments)`: a model's folder with `model.json`."""
    import json

    def make(parameters: str = "", **arguments: Any) -> ModelFolder:
        (tmp_path / "llm/1").mkdir(parents=True, exist_ok=True)
        (tmp_path / "llm/1/model.json").write_text(json.dumps({"model": "tiny", **arguments}))
        config = parse_text(f'name: "llm" backend: "vllm" {parameters}')
        version_dir = tmp_path / "llm/1"
        return ModelFolder(tmp_path / "llm", backend.complete_config(tmp_path / "llm", version_dir, config))

    return make


@pytest.fixture
def open_instance(llm_class: Any, folder: Callable[..., ModelFolder], host: FakeHost) -> Iterator[OpenInstance]:
    """Return `OpenInstance`."""
    opened: list[Any] = []

    def open_it(*, parameters: str = "", **arguments: Any) -> Any:
        opened.append(backend.load(folder(parameters, **arguments).spec(), host))
        return opened[-1]

    yield open_it
    for instance in opened:
        instance.close()


@pytest.fixture
def llm(llm_class: Any) -> Callable[[], Any]:
    """Return the function that returns the newest engine."""
    return lambda: llm_class.made[-1]


@pytest.fixture
def by_steps(llm_class, monkeypatch):
    """Let the engine wait before each step."""
    monkeypatch.setattr(llm_class, "step_by_step", True)
