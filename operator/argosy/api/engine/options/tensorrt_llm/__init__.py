"""TensorRT-LLM's options: those of the engine, those of the engine-less path, and what contradicts what."""

from .contradictions import contradictions, parallel_contradictions
from .elsewhere import ELSEWHERE
from .engine import ENGINE
from .pytorch import PYTORCH
from .quantization import QFORMATS, QUANTIZATION, asks_for_calibration, qformat_of
from .serving import SERVING

__all__ = [
    "ELSEWHERE",
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
