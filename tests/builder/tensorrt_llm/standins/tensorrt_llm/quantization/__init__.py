import json
import math
import os
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import Any

from standin import called, changed, typed

from tensorrt_llm.checkpoints import Mapping, config
from tensorrt_llm.models.modeling_utils import QuantConfig


class QuantAlgo(StrEnum):
    W8A16 = "W8A16"
    W4A16 = "W4A16"
    W4A16_AWQ = "W4A16_AWQ"
    W4A8_AWQ = "W4A8_AWQ"
    W8A8_SQ_PER_CHANNEL = "W8A8_SQ_PER_CHANNEL"
    FP8 = "FP8"
    FP8_PER_CHANNEL_PER_TOKEN = "FP8_PER_CHANNEL_PER_TOKEN"
    NVFP4 = "NVFP4"


FORMATS = {
    "full_prec": None,
    "int8_wo": "W8A16",
    "int4_wo": "W4A16",
    "fp8": "FP8",
    "fp8_pc_pt": "FP8_PER_CHANNEL_PER_TOKEN",
    "int8_sq": "W8A8_SQ_PER_CHANNEL",
    "int4_awq": "W4A16_AWQ",
    "w4a8_awq": "W4A8_AWQ",
    "nvfp4": "NVFP4",
}


def quantize_and_export(
    *,
    model_dir: str,
    device: str,
    calib_dataset: str,
    dtype: str,
    qformat: str,
    kv_cache_dtype: str | None,
    calib_size: int,
    batch_size: int,
    calib_max_seq_length: int,
    awq_block_size: int,
    output_dir: str,
    tp_size: int,
    pp_size: int,
    cp_size: int,
    seed: int,
    tokenizer_max_seq_length: int,
    num_medusa_heads: int | None = None,
    num_medusa_layers: int | None = None,
    max_draft_len: int | None = None,
    medusa_hidden_act: str | None = None,
    medusa_model_dir: str | None = None,
    quant_medusa_head: bool | None = None,
    auto_quantize_bits: float | None = None,
    device_map: str = "auto",
    quantize_lm_head: bool = False,
) -> None:
    """Quantize as TensorRT-LLM does, with its traps: words in paths have effects, a wrong cache becomes int8."""
    arguments: dict[str, Any] = dict(locals())
    for name in ("calib_size", "batch_size", "calib_max_seq_length", "awq_block_size", "tp_size", "pp_size", "seed"):
        typed(name, arguments[name], int)
    typed("device", device, "cuda", "cpu")
    typed("dtype", dtype, "auto", "float16", "bfloat16", "float32")
    typed("kv_cache_dtype", kv_cache_dtype, None, "int8", "fp8")
    typed("qformat", qformat, *FORMATS)
    # it goes to transformers as it is, which knows no "gpu", whatever quantize.py takes on its command line
    typed("device_map", device_map, "auto", "sequential", "cpu", "cuda")
    model, data = Path(model_dir), Path(calib_dataset)
    assert (model / "config.json").is_file()
    for trap in ("mpt", "vila", "llava-onevision-qwen2"):
        assert trap not in model_dir, f"the path {model_dir} means a model of another kind"
    for trap in ("cnn_dailymail", "scienceqa", "science_qa"):
        assert trap not in calib_dataset
    if not data.is_dir():
        raise NotImplementedError(f"Unsupported dataset name or local repo directory: {calib_dataset}.")
    assert os.environ["HF_HUB_OFFLINE"] == os.environ["HF_DATASETS_OFFLINE"] == "1"
    assert os.environ["TLLM_LOG_LEVEL"] == "VERBOSE"
    texts = [json.loads(line)["text"] for line in (data / "train.jsonl").read_text().splitlines()][:calib_size]
    assert len(texts) == calib_size
    settings = {
        name: value for name, value in arguments.items() if name not in ("model_dir", "calib_dataset", "output_dir")
    }
    called("quantize_and_export", texts=len(texts), **settings)
    for batch in range(math.ceil(calib_size / batch_size)):
        print(f"[11/22/2026-10:00:00] [TRT-LLM] [V] Calibrating batch {batch}", flush=True)
    print("[11/22/2026-10:00:01] [TRT-LLM] [I] Quantization done. Total time used: 1.00 s.", flush=True)
    ranks = tp_size * pp_size
    awq = "awq" in qformat
    quantization = asdict(
        QuantConfig(
            quant_algo=FORMATS[qformat],
            kv_cache_quant_algo=kv_cache_dtype.upper() if kv_cache_dtype else None,
            group_size=awq_block_size if awq else 128,
            pre_quant_scale=awq,
            exclude_modules=["lm_head"],
        )
    )
    mapping = Mapping(ranks, tp_size=tp_size, pp_size=pp_size).to_dict()
    checkpoint = config(model, dtype, mapping, quantization) | {"producer": {"name": "modelopt", "version": "0.37.0"}}
    for rank in range(ranks):
        Path(output_dir, f"rank{rank}.safetensors").write_bytes(b"weights")
    Path(output_dir, "config.json").write_text(json.dumps(changed("checkpoint", checkpoint)))
    print(f"[11/22/2026-10:00:02] [TRT-LLM] [I] Quantized model exported to {output_dir}", flush=True)
