"""Which arithmetic a builder makes, and on which architectures."""

from collections.abc import Mapping

from argosy.api.engine.precision import Precision

P = Precision
PRECISIONS: Mapping[str, tuple[Precision, ...]] = {
    "tensorrt_llm": (P.FP32, P.BF16, P.FP16, P.FP8, P.INT8, P.FP4, P.INT4),
    "tensorrt_llm pytorch": (P.BF16, P.FP16, P.FP8, P.FP4, P.INT4),
    "tensorrt": (P.FP32, P.TF32, P.BF16, P.FP16, P.FP8, P.INT8),
    "onnxruntime": (P.FP32, P.FP16, P.INT8),
    "aotinductor": (P.FP32, P.BF16, P.FP16),
}
"""By builder; TensorRT-LLM's engine-less path is a builder of its own here."""

LEAST: Mapping[Precision, float] = {P.TF32: 8.0, P.BF16: 8.0, P.FP8: 8.9, P.FP4: 10.0}
"""The first compute capability with this arithmetic."""
ENGINES_FROM = 8.0
"""TensorRT-LLM's own first compute capability."""
WITHOUT_INTEGERS = (10.0, 12.0)
"""From the first up to the second TensorRT-LLM builds no engines of int8 and int4."""


def unsupported_here(builder: str, precision: Precision | None, architecture: str, backend: str = "") -> str:
    """Return why a builder cannot make this arithmetic for an architecture (`9.0`, or a CPU's name); empty: it can.

    `backend` is TensorRT-LLM's option.
    """
    if not architecture[:1].isdigit():
        return "" if builder in ("onnxruntime", "aotinductor") else f"{builder} builds for GPUs, not for {architecture}"
    if precision is None:
        return ""
    capability = float(architecture)
    least = max(LEAST.get(precision, 0.0), ENGINES_FROM if builder == "tensorrt_llm" else 0.0)
    if capability < least:
        return f"{precision} needs a GPU of compute capability {least} or more, and this is {architecture}"
    integers = precision in (P.INT8, P.INT4)
    if builder == "tensorrt_llm" and backend != "pytorch" and integers:
        first, behind = WITHOUT_INTEGERS
        if first <= capability < behind:
            return (
                f"TensorRT-LLM builds no engines of {precision} for compute capability {architecture}; take fp8 or fp4"
            )
    return ""
