"""`trtllm-build` of TensorRT-LLM 1.2.1: every flag and choice that its documentation has, and what it writes."""

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

from standin import called, changed

P = ("auto", "float16", "float32", "bfloat16", "int32", "disable")
F = ("fp8", "disable")
PLUGINS = {
    "bert_attention_plugin": (P, "auto"),
    "gpt_attention_plugin": (P, "auto"),
    "gemm_plugin": ((*P, "fp8", "nvfp4"), "disable"),
    "gemm_swiglu_plugin": (F, "disable"),
    "fp8_rowwise_gemm_plugin": (P, "disable"),
    "nccl_plugin": (P, "auto"),
    "lora_plugin": (P, "disable"),
    "moe_plugin": (P, "auto"),
    "mamba_conv1d_plugin": (P, "auto"),
    "low_latency_gemm_plugin": (F, "disable"),
    "low_latency_gemm_swiglu_plugin": (F, "disable"),
    "gemm_allreduce_plugin": (("float16", "bfloat16", "disable"), "disable"),
}
ENABLED = {
    "dora_plugin": False,
    "context_fmha": True,
    "bert_context_fmha_fp32_acc": False,
    "remove_input_padding": True,
    "norm_quant_fusion": False,
    "reduce_fusion": False,
    "user_buffer": False,
    "use_paged_context_fmha": True,
    "use_fp8_context_fmha": True,
    "fuse_fp4_quant": False,
    "multiple_profiles": False,
    "paged_state": True,
    "streamingllm": False,
    "use_fused_mlp": True,
    "pp_reduce_scatter": False,
}
NUMBERS = {
    "max_batch_size": 2048,
    "max_input_len": 1024,
    "max_seq_len": None,
    "max_beam_width": 1,
    "max_num_tokens": 8192,
    "opt_num_tokens": None,
    "max_encoder_input_len": 1024,
    "max_prompt_embedding_table_size": 0,
    "max_lora_rank": 64,
    "max_draft_len": 0,
    "workers": 1,
}
MODES = {
    "draft_tokens_external": 2,
    "medusa": 4,
    "lookahead_decoding": 8,
    "explicit_draft_tokens": 16,
    "eagle": 32,
}
SWITCHES = [
    "strip_plan",
    "weight_sparsity",
    "weight_streaming",
    "fast_build",
    "enable_debug_output",
    "dry_run",
    "monitor_memory",
]


def parser() -> argparse.ArgumentParser:
    flags = argparse.ArgumentParser("trtllm-build", allow_abbrev=False)
    flags.add_argument("--checkpoint_dir", required=True)
    flags.add_argument("--output_dir", default="engine_outputs")
    for name, number in NUMBERS.items():
        flags.add_argument(f"--{name}", type=int, default=number)
    flags.add_argument("--tokens_per_block", type=int, default=32)
    flags.add_argument("--kv_cache_type", choices=["continuous", "paged", "disabled"])
    flags.add_argument("--output_timing_cache", default="model.cache")
    flags.add_argument("--profiling_verbosity", choices=["layer_names_only", "detailed", "none"])
    flags.add_argument("--logits_dtype", choices=["float16", "float32"])
    flags.add_argument("--log_level", choices=["error", "warning", "info", "verbose", "debug"], default="info")
    flags.add_argument("--speculative_decoding_mode", choices=[*MODES])
    flags.add_argument("--lora_target_modules", nargs="+", default=[])
    for name in (*SWITCHES, "gather_context_logits", "gather_all_token_logits"):
        flags.add_argument(f"--{name}", action="store_true")
    for name, (choices, default) in PLUGINS.items():
        flags.add_argument(f"--{name}", choices=choices, default=default)
    for name, on in ENABLED.items():
        flags.add_argument(f"--{name}", choices=["enable", "disable"], default="enable" if on else "disable")
    return flags


def main() -> None:
    arguments = parser().parse_args()
    called("trtllm-build", arguments=[argument for argument in sys.argv[1:] if not argument.startswith("/")])
    say(f"Set PluginConfig.gemm_plugin to {arguments.gemm_plugin}.")
    checkpoint = json.loads(Path(arguments.checkpoint_dir, "config.json").read_text())
    ranks = checkpoint["mapping"]["world_size"]
    output = Path(arguments.output_dir)
    output.mkdir(exist_ok=True)
    build = config(arguments, checkpoint)
    engine = {"version": "1.2.1", "pretrained_config": checkpoint, "build_config": build}
    (output / "config.json").write_text(json.dumps(changed("engine", engine)))
    for rank in range(ranks):
        assert Path(arguments.checkpoint_dir, f"rank{rank}.safetensors").is_file()
        say("Build TensorRT engine Unnamed Network 0")
        say("Total time of building Unnamed Network 0: 00:00:31")
        if f"rank{rank}" != os.environ.get("STANDIN_WITHOUT"):
            (output / f"rank{rank}.engine").write_bytes(b"engine")
        say("Engine serialized. Total time: 00:00:01")
    Path(arguments.output_timing_cache).write_bytes(b"cache")
    say("Total time of building all engines: 00:00:34")


def config(arguments: argparse.Namespace, checkpoint: dict[str, Any]) -> dict[str, Any]:
    """Return build_config, with what build() changes silently."""
    fp8 = checkpoint["quantization"]["quant_algo"] in ("FP8", "W4A8_AWQ", "NVFP4")
    cache = checkpoint["quantization"]["kv_cache_quant_algo"]
    longest = arguments.max_seq_len or checkpoint["max_position_embeddings"]
    plugins: dict[str, Any] = {name: none(getattr(arguments, name)) for name in PLUGINS}
    plugins |= {name: getattr(arguments, name) == "enable" for name in ENABLED}
    plugins |= {"dtype": checkpoint["dtype"], "tokens_per_block": arguments.tokens_per_block, "paged_state": False}
    plugins["paged_kv_cache"] = arguments.kv_cache_type in (None, "paged")
    if checkpoint["mapping"]["world_size"] == 1:
        plugins["nccl_plugin"] = None
    if checkpoint["quantization"]["quant_algo"] == "NVFP4":
        plugins["gemm_plugin"] = "nvfp4"
    if cache == "INT8" or (cache == "FP8" and not fp8) or not plugins["context_fmha"]:
        plugins["use_paged_context_fmha"] = False
    plugins["use_fp8_context_fmha"] &= fp8 and cache == "FP8"
    if checkpoint["mapping"]["tp_size"] == 1:
        plugins["reduce_fusion"] = plugins["user_buffer"] = False
    prompt = min(arguments.max_input_len, longest)
    guesses = arguments.speculative_decoding_mode is not None
    tokens, optimum = numbers_of_tokens(arguments, prompt, longest, plugins)
    if guesses:
        tokens = max(tokens, arguments.max_batch_size * (arguments.max_draft_len + 1))
    return {
        "max_input_len": prompt,
        "max_seq_len": longest + (arguments.max_draft_len if guesses else 0),
        "max_batch_size": arguments.max_batch_size,
        "max_beam_width": arguments.max_beam_width,
        "max_num_tokens": tokens,
        "opt_num_tokens": optimum,
        "max_prompt_embedding_table_size": arguments.max_prompt_embedding_table_size,
        "max_draft_len": arguments.max_draft_len,
        "kv_cache_type": arguments.kv_cache_type or "paged",
        "gather_context_logits": arguments.gather_context_logits,
        "profiling_verbosity": arguments.profiling_verbosity or "layer_names_only",
        "speculative_decoding_mode": MODES.get(arguments.speculative_decoding_mode, 1),
        "weight_sparsity": arguments.weight_sparsity,
        "weight_streaming": arguments.weight_streaming,
        "monitor_memory": arguments.monitor_memory,
        "lora_config": {"max_lora_rank": arguments.max_lora_rank, "lora_target_modules": arguments.lora_target_modules},
        "plugin_config": plugins,
    }


def numbers_of_tokens(
    arguments: argparse.Namespace, prompt: int, longest: int, plugins: dict[str, Any]
) -> tuple[int, int | None]:
    """Return max_num_tokens and opt_num_tokens as check_max_num_tokens() changes them."""
    batch, tokens, optimum = arguments.max_batch_size, arguments.max_num_tokens, arguments.opt_num_tokens
    if optimum is None and not plugins["multiple_profiles"]:
        optimum = min(batch * arguments.max_beam_width, tokens)
    tokens = min(tokens, longest * batch)
    tokens = max(tokens, arguments.tokens_per_block if plugins["context_fmha"] else prompt)
    return tokens, optimum if optimum is None else min(optimum, tokens)


def none(value: str) -> str | None:
    return None if value == "disable" else value


def say(text: str) -> None:
    print(f"[11/22/2026-10:00:00] [TRT-LLM] [I] {text}", flush=True)


if __name__ == "__main__":
    main()
