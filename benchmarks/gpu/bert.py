"""BERT's encoder with random weights. Its shape stands in `shape.json`, next to this file.

Argosy serves this file itself (`runtime: "model.py"`); Triton's Python backend and the bare loop import it.
"""

import json
from pathlib import Path

import torch


class Bert(torch.nn.Module):
    """Token ids INT64[sequence] of each row to one vector FP32[hidden]."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        shape = json.loads((Path(__file__).parent / "shape.json").read_text())
        hidden = shape["hidden"]
        self.words = torch.nn.Embedding(shape["vocabulary"], hidden)
        self.positions = torch.nn.Parameter(torch.randn(shape["sequence"], hidden) / 50)
        layer = torch.nn.TransformerEncoderLayer(
            hidden, shape["heads"], 4 * hidden, activation="gelu", batch_first=True
        )
        self.layers = torch.nn.TransformerEncoder(layer, shape["layers"], enable_nested_tensor=False)
        if shape["half"]:
            self.half()
        self.eval()

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.layers(self.words(ids) + self.positions)[:, 0].float()
