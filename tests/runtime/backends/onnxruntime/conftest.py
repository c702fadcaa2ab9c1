"""A fixture that loads a graph as a model."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from argosy_runtime.backends import onnxruntime as backend


@pytest.fixture
def loaded(model_folder: Callable[[str], Any], host: Any) -> Any:
    def load(pbtxt: str, save: Callable[[Path], None]) -> Any:
        folder = model_folder(pbtxt)
        save(folder.version_dir / "model.onnx")
        return backend.load(folder.spec(), host)

    return load
