"""The loop that a server is held against: one batch after the other, from an array on the host to an array there."""

import importlib.util
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import torch


class BareLoop:
    """The model of an Argosy repository (`version_dir`) on `device`, without a server."""

    def __init__(self, version_dir: Path, device: str) -> None:
        spec = importlib.util.spec_from_file_location("bare_bert", version_dir / "model.py")
        assert spec is not None
        assert spec.loader is not None
        source: Any = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(source)
        self._model = source.Bert().to(device)
        self._device = device

    def rate(self, ids: np.ndarray, seconds: float) -> float:
        """Return rows a second, over at least so many seconds; `ids` is a batch."""
        with torch.inference_mode():
            for _ in range(3):
                self._once(ids)
            begun, batches = perf_counter(), 0
            while (spent := perf_counter() - begun) < seconds:
                self._once(ids)
                batches += 1
        return batches * len(ids) / spent

    def _once(self, ids: np.ndarray) -> np.ndarray:
        vectors: np.ndarray = self._model(torch.from_numpy(ids).to(self._device)).cpu().numpy()
        return vectors
