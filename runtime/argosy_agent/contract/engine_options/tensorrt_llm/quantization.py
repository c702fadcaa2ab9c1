"""Options of quantization, which both paths share, and what each precision stands for."""

from collections.abc import Mapping
from typing import Any

from argosy_agent.contract.engine_options.option import choice, flag, integer
from argosy_agent.contract.engine_options.precisions import Precision

QFORMATS: Mapping[Precision, tuple[str, ...]] = {
    Precision.FP32: ("full_prec",),
    Precision.FP16: ("full_prec",),
    Precision.BF16: ("full_prec",),
    Precision.FP8: ("fp8", "fp8_pc_pt"),
    Precision.INT8: ("int8_sq", "int8_wo"),
    Precision.FP4: ("nvfp4",),
    Precision.INT4: ("int4_awq", "int4_wo", "w4a8_awq"),
}
"""The formats of `quantize_and_export` for each precision; the first is what it means by itself."""
WITHOUT_DATA = frozenset({"full_prec", "int8_wo", "int4_wo"})
"""Formats that find nothing in data."""
AWQ = frozenset({"int4_awq", "w4a8_awq"})
FP8_WEIGHTS = frozenset({"fp8", "fp8_pc_pt"})

QUANTIZATION = {
    "qformat": choice(
        "The format of quantization; precision says which go.",
        *dict.fromkeys(qformat for formats in QFORMATS.values() for qformat in formats),
        default="fp8, int8_sq, int4_awq or nvfp4, by precision",
    ),
    "dtype": choice(
        "The data type of what is not quantized.", "auto", "float16", "bfloat16", "float32", default="auto"
    ),
    "awq_block_size": integer("Weights that share a scale, of the AWQ formats.", default=128),
    "quantize_lm_head": flag("The last layer is quantized too, of fp8.", default=False),
    "calib_batch_size": integer("Samples of the calibration data that run at once.", default=1),
    "calib_max_seq_length": integer("Tokens of a sample that are used.", default=512),
    "tokenizer_max_seq_length": integer("The tokenizer's own limit.", default=2048),
    "random_seed": integer("The seed of what is drawn by chance.", 0, default=1234),
    "device_map": choice(
        "Where the model is while it is calibrated.", "auto", "sequential", "cpu", "gpu", default="auto"
    ),
}
DEVICE_MAPS = {"gpu": "cuda"}
"""What transformers calls a `device_map` that `quantize.py` names otherwise; every other is called the same."""
OF_CALIBRATION = ("calib_batch_size", "calib_max_seq_length", "tokenizer_max_seq_length", "random_seed", "device_map")
"""Options without effect where nothing is calibrated."""


def qformat_of(precision: Precision | None, options: Mapping[str, Any]) -> str:
    """Return the format that is meant; empty where neither says one."""
    qformat = options.get("qformat")
    if isinstance(qformat, str):
        return qformat
    return QFORMATS.get(precision, ("",))[0] if precision else ""


def asks_for_calibration(precision: Precision | None, options: Mapping[str, Any]) -> str:
    """Return the option or format that finds its ranges in data, or nothing."""
    qformat = qformat_of(precision, options)
    if qformat and qformat not in WITHOUT_DATA:
        return qformat
    cache = options.get("kv_cache_dtype")
    return f"kv_cache_dtype: {cache}" if isinstance(cache, str) else ""
