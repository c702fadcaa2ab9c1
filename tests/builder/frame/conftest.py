"""A build in this process: a store and a model in folders, a builder that copies."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from argosy_agent.cache.storage import Storage
from argosy_agent.contract.builds import BuildReport, BuildRequest, BuildState, DataSource
from argosy_agent.engines.store import EngineStore, open_store
from argosy_agent.transfer.stores.settings import Settings
from argosy_builder import registry
from argosy_builder.build import Build, BuildContext
from argosy_builder.reporter import Course

from .fakes import CopyingBuilder


class Frame:
    """Builds what it is asked, as often as it is asked."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.model = folder / "model"
        self.model.mkdir()
        (self.model / "model.onnx").write_text("weights")
        self.builder = CopyingBuilder()
        self.reports: list[BuildReport] = []
        self.request = BuildRequest(
            "onnxruntime", "amd64", "image:1", f"file://{folder}/store", DataSource(f"file://{self.model}")
        )
        self.workspace = folder / "workspace"

    @property
    def store(self) -> EngineStore:
        return open_store(self.request.store, Settings(self.folder, {}), self.folder)

    def run(self, store: EngineStore | None = None, **asked: object) -> BuildReport:
        self.reports = []
        around = BuildContext(
            self.workspace,
            store or self.store,
            Storage(self.workspace / "fetched", pvc_root=self.folder),
            clock=iter(range(1000)).__next__,  # type: ignore[arg-type]
            now=lambda: "2026-01-01T00:00:00Z",
        )
        course = Course(self.reports.append, BuildReport(BuildState.PENDING, pod="a"))
        return Build(replace(self.request, **asked), around, course).run()  # type: ignore[arg-type]


@pytest.fixture
def frame(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Frame:
    made = Frame(tmp_path)
    resolve: Callable[[str], object] = lambda name: made.builder  # noqa: E731
    monkeypatch.setattr(registry, "resolve", resolve)
    assert registry.resolve is resolve
    return made
