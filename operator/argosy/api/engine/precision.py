"""The arithmetic that an engine uses."""

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
