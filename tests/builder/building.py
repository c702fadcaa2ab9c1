"""Builds in this process, with the tools in theirs: a model, data and a store in folders."""

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.builder.models import CLASSES, FEATURES, perceptron, samples

from argosy_agent.cache.storage import Storage
from argosy_agent.contract.builds import BuildReport, BuildRequest, BuildState, DataSource, Gate, TensorSpec
from argosy_agent.engines.store import EngineStore, open_store
from argosy_agent.transfer.stores.settings import Settings
from argosy_builder.build import Build, BuildContext
from argosy_builder.contract import BuildError
from argosy_builder.reporter import Course


class Runs:
    """Runs builds of `request`, each with changes of its own; `reports` are those of the newest."""

    def __init__(self, folder: Path, request: BuildRequest) -> None:
        self.folder, self.request = folder, request
        self.workspace = folder / "workspace"
        self.reports: list[BuildReport] = []

    @property
    def store(self) -> EngineStore:
        return open_store(self.request.store, Settings(self.folder, {}), self.folder)

    def run(self, store: EngineStore | None = None, **changes: object) -> BuildReport:
        """Build the request with changes, in this store or the request's own."""
        self.reports = []
        context = BuildContext(
            self.workspace,
            store or self.store,
            Storage(self.workspace / "fetched", pvc_root=self.folder),
            time.monotonic,
            lambda: "2026-01-01T00:00:00Z",
        )
        course = Course(self.reports.append, BuildReport(BuildState.PENDING))
        return Build(replace(self.request, **changes), context, course).run()  # type: ignore[arg-type]

    def error(self, **changes: Any) -> BuildError:
        """Return the error of a build that must fail."""
        with pytest.raises(BuildError) as error:
            self.run(**changes)
        return error.value


class PerceptronBuilds(Runs):
    """Builds of a small ONNX model, with samples for it."""

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
