"""The precisions of engines: which builders make them, and which GPUs have them."""

from collections.abc import Mapping
from enum import StrEnum


class Precision(StrEnum):
    """The arithmetic that an engine uses."""

    FP32 = "fp32"
    TF32 = "tf32"
    BF16 = "bf16"
    FP16 = "fp16"
    FP8 = "fp8"
    INT8 = "int8"
    FP4 = "fp4"
    INT4 = "int4"


BITS = {
    Precision.FP32: 32,
    Precision.TF32: 19,
    Precision.BF16: 16,
    Precision.FP16: 16,
    Precision.FP8: 8,
    Precision.INT8: 8,
    Precision.FP4: 4,
    Precision.INT4: 4,
}
QUANTIZED = tuple(precision for precision, bits in BITS.items() if bits < 16)
"""The precisions that need an accuracy gate."""

P = Precision
PRECISIONS: Mapping[str, tuple[Precision, ...]] = {
    "tensorrt_llm": (P.FP32, P.BF16, P.FP16, P.FP8, P.INT8, P.FP4, P.INT4),
    "tensorrt_llm pytorch": (P.BF16, P.FP16, P.FP8, P.FP4, P.INT4),
    "tensorrt": (P.FP32, P.TF32, P.BF16, P.FP16, P.FP8, P.INT8),
    "onnxruntime": (P.FP32, P.FP16, P.INT8),
    "aotinductor": (P.FP32, P.BF16, P.FP16),
}
"""The precisions by builder. TensorRT-LLM's engine-less path is a builder of its own here."""

FIRST_CAPABILITY: Mapping[Precision, float] = {P.TF32: 8.0, P.BF16: 8.0, P.FP8: 8.9, P.FP4: 10.0}
"""The first compute capability that has a precision."""
TENSORRT_LLM_FROM = 8.0
"""The first compute capability that TensorRT-LLM supports."""
WITHOUT_INTEGERS = (10.0, 12.0)
"""TensorRT-LLM builds no engines of int8 and int4 from the first compute capability up to the second."""


def unsupported_here(builder: str, precision: Precision | None, architecture: str, backend: str = "") -> str:
    """Return why a builder cannot make a precision for an architecture (`9.0`, or a CPU's name); empty: it can.

    `precision` None is that of the model. `backend` is TensorRT-LLM's option.
    """
    if not architecture[:1].isdigit():
        return "" if builder in ("onnxruntime", "aotinductor") else f"{builder} builds for GPUs, not for {architecture}"
    capability = float(architecture)
    first = FIRST_CAPABILITY.get(precision, 0.0) if precision else 0.0
    first = max(first, TENSORRT_LLM_FROM if builder == "tensorrt_llm" else 0.0)
    if capability < first:
        subject = precision or "the model"
        return f"{subject} needs a GPU of compute capability {first} or more, and this is {architecture}"
    from_, before = WITHOUT_INTEGERS
    integers = precision in (P.INT8, P.INT4) and from_ <= capability < before
    if builder == "tensorrt_llm" and backend != "pytorch" and integers:
        return f"TensorRT-LLM builds no engines of {precision} for compute capability {architecture}; take fp8 or fp4"
    return ""
