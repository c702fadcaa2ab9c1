"""Options of an engine: those of `trtllm-build`, under its own names, and those of the conversion before it.

As TensorRT-LLM 1.2.1 has them (`commands/trtllm-build`, `quantize_and_export`, `from_hugging_face`).
"""

from argosy_agent.contract.engine_options.option import Option, choice, flag, integer, integers, names

_DTYPES = ("auto", "float16", "float32", "bfloat16", "disable")


def _plugin(what: str, *more: str, only: tuple[str, ...] = _DTYPES, default: str = "auto") -> Option:
    return choice(f"The plugin for {what}: its data type, or none of it.", *more, *only, default=default)


LENGTHS = {
    "max_batch_size": integer("The most sequences that run at once.", default="maxBatchSize, else 2048"),
    "max_input_len": integer("The most tokens of a prompt.", default=1024),
    "max_seq_len": integer(
        "The most tokens of a prompt and its answer together.", default="what the model is made for"
    ),
    "max_num_tokens": integer("The most tokens of all sequences in one step, without padding.", default=8192),
    "opt_num_tokens": integer("The tokens of a step that the engine is tuned for.", default="batch size times beams"),
    "max_beam_width": integer("The most beams of a search.", default=1),
    "max_prompt_embedding_table_size": integer("Rows for prompt tuning or images.", 0, default=0),
}
CACHE = {
    "kv_cache_type": choice("How keys and values are kept.", "paged", "continuous", "disabled", default="paged"),
    "kv_cache_dtype": choice("Keys and values are kept in this precision.", "fp8", "int8", default="the model's"),
    "tokens_per_block": integers("Tokens in a block of the paged cache.", 8, 16, 32, 64, 128, default=32),
}
ATTENTION = {
    "context_fmha": flag("Fused attention over the prompt.", default=True),
    "use_paged_context_fmha": flag(
        "The same over a paged cache; reuse of the cache and chunked prompts need it.", default=True
    ),
    "use_fp8_context_fmha": flag("Fused attention over the prompt in fp8.", default="true where the cache is fp8"),
    "remove_input_padding": flag("Sequences are packed without padding.", default=True),
}
PLUGINS = {
    "gpt_attention_plugin": _plugin("attention"),
    "bert_attention_plugin": _plugin("the attention of encoders"),
    "gemm_plugin": _plugin("matrix products", "fp8", "nvfp4", default="disable"),
    "gemm_swiglu_plugin": _plugin("matrix products with SwiGLU", only=("fp8", "disable"), default="disable"),
    "fp8_rowwise_gemm_plugin": _plugin("fp8 products scaled by row", default="disable"),
    "low_latency_gemm_plugin": _plugin("products of few rows", only=("fp8", "disable"), default="disable"),
    "low_latency_gemm_swiglu_plugin": _plugin(
        "products of few rows with SwiGLU", only=("fp8", "disable"), default="disable"
    ),
    "gemm_allreduce_plugin": _plugin(
        "products joined with their all-reduce", only=("float16", "bfloat16", "disable"), default="disable"
    ),
    "nccl_plugin": _plugin("what GPUs tell one another"),
    "moe_plugin": _plugin("mixtures of experts"),
    "mamba_conv1d_plugin": _plugin("Mamba's convolutions"),
    "lora_plugin": _plugin("LoRA", default="disable"),
    "dora_plugin": flag("The plugin for DoRA.", default=False),
}
FUSIONS = {
    "use_fused_mlp": flag("Gated feed-forward layers as one product.", default=True),
    "norm_quant_fusion": flag("Norms joined with quantization.", default=False),
    "reduce_fusion": flag("All-reduce joined with what follows it.", default=False),
    "user_buffer": flag("All-reduce without copies.", default=False),
    "fuse_fp4_quant": flag("Quantization to fp4 joined with attention.", default=False),
    "pp_reduce_scatter": flag("Less between stages of a pipeline; Mixtral alone has it.", default=False),
    "multiple_profiles": flag("Several profiles: faster engines, slower builds.", default=False),
    "paged_state": flag("A paged state, of models that have one.", default=True),
}
BUILD = {
    "workers": integer("Ranks that are built at once.", default="as many as the build has GPUs"),
    "logits_dtype": choice("The data type of logits.", "float16", "float32", default="float32"),
    "gather_context_logits": flag("The logits of a prompt's tokens can be asked for.", default=False),
    "profiling_verbosity": choice(
        "Detail of the profiling output.", "layer_names_only", "detailed", "none", default="layer_names_only"
    ),
    "weight_sparsity": flag("Weights that are 2:4 sparse are used as such.", default=False),
    "weight_streaming": flag("Weights may stay in the host's memory.", default=False),
    "fast_build": flag("A faster build of a perhaps slower engine.", default=False),
    "monitor_memory": flag("The build's memory is logged.", default=False),
    "max_lora_rank": integer("The largest rank of a LoRA adapter.", default=64),
    "lora_target_modules": names("The modules that LoRA changes, as attn_q."),
    "speculative_decoding_mode": choice(
        "How tokens are guessed ahead.", "draft_tokens_external", "lookahead_decoding", default="not at all"
    ),
    "max_draft_len": integer("The most tokens that are guessed ahead.", 0, default=0),
}
CONVERT = {
    "use_parallel_embedding": flag("The embedding is split over GPUs.", default=False),
    "embedding_sharding_dim": integers("0: split by words, 1: by the hidden size.", 0, 1, default=0),
    "load_model_on_cpu": flag("The checkpoint is converted in the host's memory.", default=False),
    "moe_tp_size": integer("GPUs that one expert is split over.", default="parallelism.tensor"),
    "moe_ep_size": integer("GPUs that experts are shared out to.", default=1),
}
ENGINE = {**LENGTHS, **CACHE, **ATTENTION, **PLUGINS, **FUSIONS, **BUILD, **CONVERT}
"""Options that the engine's files depend on, but those of quantization."""
