"""TensorRT-LLM's options: those of the engine, those of the engine-less path, and what contradicts what."""

from .backends import LOOKAHEAD, PYTORCH, SERVING
from .contradictions import contradictions, parallel_contradictions
from .engine import ENGINE
from .quantization import QFORMATS, QUANTIZATION, asks_for_calibration, qformat_of
from .renamed import RENAMED
from .served import paged_attention

__all__ = [
    "RENAMED",
    "ENGINE",
    "LOOKAHEAD",
    "PYTORCH",
    "QFORMATS",
    "QUANTIZATION",
    "SERVING",
    "asks_for_calibration",
    "contradictions",
    "paged_attention",
    "parallel_contradictions",
    "qformat_of",
]
