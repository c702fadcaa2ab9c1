"""TensorRT-LLM's options: those of the engine, those of the engine-less path, and what contradicts what."""

from .contradictions import contradictions, parallel_contradictions
from .engine import ENGINE
from .pytorch import PYTORCH
from .quantization import QFORMATS, QUANTIZATION, asks_for_calibration, qformat_of
from .renamed import RENAMED
from .serving import SERVING

__all__ = [
    "RENAMED",
    "ENGINE",
    "PYTORCH",
    "QFORMATS",
    "QUANTIZATION",
    "SERVING",
    "asks_for_calibration",
    "contradictions",
    "parallel_contradictions",
    "qformat_of",
]
