"""Builds of TensorRT on its stand-in, with the tools in processes of their own that find the stand-in by themselves."""

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.runtime.backends.plans import GPU, MACHINE, played, standin
from tests.runtime.builder.models import CLASSES, FEATURES, perceptron, samples

from argosy_agent.cache.storage import Storage
from argosy_agent.contract.builds import BuildReport, BuildRequest, BuildState, DataSource, Gate, TensorSpec
from argosy_agent.engines.store import open_store
from argosy_agent.transfer.stores.settings import Settings
from argosy_runtime.builder.build import Build, Surroundings
from argosy_runtime.builder.course import Course


class Builds:
    """A model, data and a store in folders."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.model = perceptron(folder / "model/model.onnx")
        samples(folder / "data/data.npz")
        self.reports: list[BuildReport] = []
        self.request = BuildRequest(
            "tensorrt",
            "9.0",
            "image:1",
            f"file://{folder}/store",
            DataSource(f"file://{folder}/model"),
            inputs=(TensorSpec("x", "TYPE_FP32", (FEATURES,)),),
            outputs=(TensorSpec("y", "TYPE_FP32", (CLASSES,)),),
            max_batch_size=8,
            batch_sizes=(4,),
        )
        self.data = DataSource(f"file://{folder}/data")
        self.gate = Gate(self.data, metric="cosine_similarity", minimum=0.9)

    def run(self, **asked: object) -> BuildReport:
        workspace = self.folder / "workspace"
        around = Surroundings(
            workspace,
            open_store(self.request.store, Settings(self.folder, {}), self.folder),
            Storage(workspace / "fetched", pvc_root=self.folder),
            time.monotonic,
            lambda: "2026-01-01T00:00:00Z",
        )
        course = Course(self.reports.append, BuildReport(BuildState.PENDING))
        return Build(replace(self.request, **asked), around, course).run()  # type: ignore[arg-type]

    def plan(self, report: BuildReport) -> bytes:
        return Path(report.uri.removeprefix("file://"), "model.plan").read_bytes()

    @property
    def lines(self) -> list[str]:
        return [report.line for report in self.reports]


def become(monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    """The release that processes from now on find; this one's stand-in too."""
    import tensorrt

    monkeypatch.setenv("STANDIN_TENSORRT_VERSION", version)
    tensorrt.become(version)


@pytest.fixture
def builds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Builds]:
    monkeypatch.setenv("PYTHONPATH", f"{MACHINE}:{GPU}")
    with standin(), played():
        become(monkeypatch, "10.16.1.11")
        yield Builds(tmp_path)
