"""Builds of TensorRT on its stand-in, with the tools in processes of their own that find the stand-in by themselves."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.builder.building import PerceptronBuilds
from tests.runtime.backends.plans import GPU, MACHINE, played, standin

from argosy_agent.contract.builds import BuildReport


class Builds(PerceptronBuilds):
    """Those of this builder."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, "tensorrt", "9.0", batch_sizes=(4,))

    def plan(self, report: BuildReport) -> bytes:
        return Path(report.uri.removeprefix("file://"), "model.plan").read_bytes()

    @property
    def lines(self) -> list[str]:
        return [report.line for report in self.reports]


def become(monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    """Set the release that processes see from now on; this process's stand-in too."""
    import tensorrt

    monkeypatch.setenv("STANDIN_TENSORRT_VERSION", version)
    tensorrt.become(version)


@pytest.fixture
def builds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Builds]:
    monkeypatch.setenv("PYTHONPATH", f"{MACHINE}:{GPU}")
    with standin(), played():
        become(monkeypatch, "10.16.1.11")
        yield Builds(tmp_path)
