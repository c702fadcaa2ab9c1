"""The calls of TensorRT-LLM for each kind of request, and the folder that results, as written in `golden/`.

`ARGOSY_UPDATE_GOLDEN=1 python -m pytest …` writes them again; read what changed.
"""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from argosy_agent.contract.builds import BuildRequest

from .conftest import Standins, a_request

GOLDEN = Path(__file__).parent / "golden"
CASES: dict[str, tuple[dict[str, Any], bool]] = {
    "as_it_is": ({}, False),
    "fp16": ({"precision": "fp16", "max_batch_size": 8}, False),
    "bf16_tp2_pp2": (
        {
            "precision": "bf16",
            "tensor": 2,
            "pipeline": 2,
            "options": {
                "max_batch_size": 16,
                "max_input_len": 64,
                "max_seq_len": 128,
                "max_num_tokens": 512,
                "opt_num_tokens": 16,
                "max_beam_width": 2,
                "kv_cache_type": "paged",
                "tokens_per_block": 64,
                "context_fmha": True,
                "use_paged_context_fmha": False,
                "gemm_plugin": "auto",
                "nccl_plugin": "bfloat16",
                "reduce_fusion": True,
                "workers": 2,
                "logits_dtype": "float16",
                "gather_context_logits": True,
                "use_parallel_embedding": True,
                "embedding_sharding_dim": 1,
                "load_model_on_cpu": True,
                "lora_plugin": "auto",
                "max_lora_rank": 8,
                "lora_target_modules": ["attn_q", "attn_v"],
            },
        },
        False,
    ),
    "fp8": (
        {
            "precision": "fp8",
            "options": {
                "kv_cache_dtype": "fp8",
                "use_fp8_context_fmha": True,
                "use_paged_context_fmha": True,
                "gemm_plugin": "fp8",
                "quantize_lm_head": True,
                "max_seq_len": 100,
            },
        },
        True,
    ),
    "int8_smoothquant": (
        {"precision": "int8", "calibration_samples": 4, "options": {"calib_batch_size": 2, "dtype": "float16"}},
        True,
    ),
    "int8_weights": ({"precision": "int8", "options": {"qformat": "int8_wo"}}, False),
    "int4_awq_tp2": (
        {
            "precision": "int4",
            "tensor": 2,
            "options": {
                "awq_block_size": 64,
                "calib_max_seq_length": 32,
                "random_seed": 7,
                "device_map": "sequential",
            },
        },
        True,
    ),
    "int8_cache": ({"options": {"kv_cache_dtype": "int8"}}, True),
    "lookahead": (
        {"options": {"speculative_decoding_mode": "lookahead_decoding", "max_draft_len": 5, "max_seq_len": 90}},
        False,
    ),
    "pytorch": (
        {
            "precision": "bf16",
            "tensor": 2,
            "max_batch_size": 4,
            "options": {"backend": "pytorch", "cuda_graph_config": None, "enable_chunked_prefill": True},
        },
        False,
    ),
    "pytorch_fp8": (
        {
            "precision": "fp8",
            "options": {"backend": "pytorch", "kv_cache_config": {"dtype": "fp8", "tokens_per_block": 64}},
        },
        True,
    ),
    "pytorch_int4": (
        {"precision": "int4", "options": {"backend": "pytorch", "awq_block_size": 64, "calib_batch_size": 4}},
        True,
    ),
    "pytorch_w4a8": (
        {"precision": "int4", "options": {"backend": "pytorch", "qformat": "w4a8_awq", "awq_block_size": 64}},
        True,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_golden(case: str, build: Callable[..., Path], standins: Standins, texts: Path) -> None:
    changes, calibrated = CASES[case]
    request: BuildRequest = a_request(**changes)
    folder = build(request, texts if calibrated else None)
    result = {
        "calls": standins.calls,
        "files": sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()),
    }
    if (folder / "llm_args.yaml").exists():
        result["llm_args.yaml"] = (folder / "llm_args.yaml").read_text().splitlines()
    expected = GOLDEN / f"{case}.json"
    text = json.dumps(result, indent=2) + "\n"
    if os.environ.get("ARGOSY_UPDATE_GOLDEN"):
        expected.write_text(text)
    assert text == expected.read_text()
