"""TensorRT-LLM's options: those of the engine, those of the engine-less path, and what contradicts what."""

from .backends import PYTORCH, SERVING
from .contradictions import contradictions, parallel_contradictions
from .engine import ENGINE
from .quantization import QFORMATS, QUANTIZATION, asks_for_calibration, qformat_of
from .renamed import RENAMED

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
