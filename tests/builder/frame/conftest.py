"""A build in this process: a store and a model in folders, a builder that copies."""

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.builder.building import Runs

from argosy_agent.contract.builds import BuildRequest, DataSource
from argosy_builder import registry

from .fakes import CopyingBuilder


class Frame(Runs):
    """Builds by a builder that copies its model."""

    def __init__(self, folder: Path) -> None:
        self.model = folder / "model"
        self.model.mkdir()
        (self.model / "model.onnx").write_text("weights")
        self.builder = CopyingBuilder()
        source = DataSource(f"file://{self.model}")
        super().__init__(folder, BuildRequest("onnxruntime", "amd64", "image:1", f"file://{folder}/store", source))


@pytest.fixture
def frame(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Frame:
    made = Frame(tmp_path)
    resolve: Callable[[str], object] = lambda name: made.builder  # noqa: E731
    monkeypatch.setattr(registry, "resolve", resolve)
    assert registry.resolve is resolve
    return made
