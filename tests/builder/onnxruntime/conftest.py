"""Real builds of ONNX Runtime, in this process with the tools in theirs."""

from pathlib import Path

import pytest
from tests.builder.building import PerceptronBuilds

from argosy_agent.contract.builds import BuildReport


class Builds(PerceptronBuilds):
    """Those of this builder."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, "onnxruntime", "amd64")

    def engine(self, report: BuildReport) -> Path:
        return Path(report.uri.removeprefix("file://"), "model.onnx")


@pytest.fixture
def builds(tmp_path: Path) -> Builds:
    return Builds(tmp_path)
