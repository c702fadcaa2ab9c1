"""Builds in this process, with the tools in theirs: a model, data and a store in folders."""

import time
from dataclasses import replace
from pathlib import Path

from tests.builder.models import CLASSES, FEATURES, perceptron, samples

from argosy_agent.cache.storage import Storage
from argosy_agent.contract.builds import BuildReport, BuildRequest, BuildState, DataSource, Gate, TensorSpec
from argosy_agent.engines.store import open_store
from argosy_agent.transfer.stores.settings import Settings
from argosy_builder.build import Build, BuildContext
from argosy_builder.reporter import Course


class Runs:
    """Builds what `request` asks, as often as it is asked; keeps what is reported."""

    def __init__(self, folder: Path, request: BuildRequest) -> None:
        self.folder, self.request = folder, request
        self.reports: list[BuildReport] = []

    def run(self, **asked: object) -> BuildReport:
        workspace = self.folder / "workspace"
        around = BuildContext(
            workspace,
            open_store(self.request.store, Settings(self.folder, {}), self.folder),
            Storage(workspace / "fetched", pvc_root=self.folder),
            time.monotonic,
            lambda: "2026-01-01T00:00:00Z",
        )
        course = Course(self.reports.append, BuildReport(BuildState.PENDING))
        return Build(replace(self.request, **asked), around, course).run()  # type: ignore[arg-type]


class PerceptronBuilds(Runs):
    """Of a small ONNX model, with samples for it."""

    def __init__(self, folder: Path, builder: str, architecture: str, *, batch_sizes: tuple[int, ...] = ()) -> None:
        self.model = perceptron(folder / "model/model.onnx")
        samples(folder / "data/data.npz")
        request = BuildRequest(
            builder,
            architecture,
            "image:1",
            f"file://{folder}/store",
            DataSource(f"file://{folder}/model"),
            inputs=(TensorSpec("x", "TYPE_FP32", (FEATURES,)),),
            outputs=(TensorSpec("y", "TYPE_FP32", (CLASSES,)),),
            max_batch_size=8,
            batch_sizes=batch_sizes,
        )
        super().__init__(folder, request)
        self.data = DataSource(f"file://{folder}/data")
        self.gate = Gate(self.data, metric="cosine_similarity", minimum=0.9)
