"""Real builds of AOTInductor: a small module, exported or as source, and data for it."""

from pathlib import Path

import numpy as np
import pytest
from tests.builder.building import Runs

from argosy_agent.contract.builds import BuildRequest, DataSource, Gate, TensorSpec

FEATURES, CLASSES, MOST = 24, 5, 6
SOURCE = f"""
import torch

class Scorer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = torch.nn.Linear({FEATURES}, 32)
        self.out = torch.nn.Linear(32, {CLASSES})

    def forward(self, features, scale):
        return self.out(torch.nn.functional.gelu(self.hidden(features)) * scale).softmax(-1)
"""


class Builds(Runs):
    """A model, data and a store in folders."""

    def __init__(self, folder: Path) -> None:
        (folder / "model").mkdir()
        (folder / "data").mkdir()
        random = np.random.default_rng(3)
        np.savez(
            folder / "data/data.npz",
            features=random.normal(size=(12, FEATURES)).astype(np.float32),
            scale=random.normal(size=(12, 1)).astype(np.float32),
        )
        request = BuildRequest(
            "aotinductor",
            "amd64",
            "image:1",
            f"file://{folder}/store",
            DataSource(f"file://{folder}/model"),
            inputs=(TensorSpec("features", "TYPE_FP32", (FEATURES,)), TensorSpec("scale", "TYPE_FP32", (1,))),
            outputs=(TensorSpec("scores", "TYPE_FP32", (CLASSES,)),),
            max_batch_size=MOST,
        )
        super().__init__(folder, request)
        self.gate = Gate(DataSource(f"file://{folder}/data"), metric="max_absolute_error", maximum=1e-5)

    def source(self) -> None:
        """Write the model as a Python file with its weights."""
        (self.folder / "model/model.py").write_text(SOURCE)
        self._torch().save(self.module().state_dict(), self.folder / "model/model.pt")

    def exported(self, most: int = MOST) -> Path:
        """Write the model as an exported program for batches up to `most`; 0: of two alone."""
        torch = self._torch()
        batch = {0: torch.export.Dim("batch", min=1, max=most)} if most else None
        inputs = (torch.zeros(2, FEATURES), torch.zeros(2, 1))
        program = torch.export.export(self.module(), inputs, dynamic_shapes=(batch, batch))
        torch.export.save(program, self.folder / "model/model.pt2")
        return self.folder / "model/model.pt2"

    def module(self):  # type: ignore[no-untyped-def]
        torch = self._torch()
        torch.manual_seed(5)
        names: dict[str, object] = {}
        exec(SOURCE, names)
        return names["Scorer"]().eval()  # type: ignore[operator]

    def _torch(self):  # type: ignore[no-untyped-def]
        import torch

        return torch


@pytest.fixture
def builds(tmp_path: Path) -> Builds:
    return Builds(tmp_path)
