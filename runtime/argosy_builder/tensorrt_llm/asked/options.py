"""The options that each path takes, and how `trtllm-build` writes them."""

LENGTHS = (
    "max_batch_size",
    "max_input_len",
    "max_seq_len",
    "max_num_tokens",
    "opt_num_tokens",
    "max_beam_width",
    "max_prompt_embedding_table_size",
    "max_draft_len",
    "max_lora_rank",
    "tokens_per_block",
)
WORDS = (
    "kv_cache_type",
    "logits_dtype",
    "profiling_verbosity",
    "speculative_decoding_mode",
    "gpt_attention_plugin",
    "bert_attention_plugin",
    "gemm_plugin",
    "gemm_swiglu_plugin",
    "fp8_rowwise_gemm_plugin",
    "low_latency_gemm_plugin",
    "low_latency_gemm_swiglu_plugin",
    "gemm_allreduce_plugin",
    "nccl_plugin",
    "moe_plugin",
    "mamba_conv1d_plugin",
    "lora_plugin",
)
ENABLED = (
    "context_fmha",
    "use_paged_context_fmha",
    "use_fp8_context_fmha",
    "remove_input_padding",
    "dora_plugin",
    "use_fused_mlp",
    "norm_quant_fusion",
    "reduce_fusion",
    "user_buffer",
    "fuse_fp4_quant",
    "pp_reduce_scatter",
    "multiple_profiles",
    "paged_state",
)
"""Flags that `trtllm-build` writes as enable and disable."""
SWITCHES = ("gather_context_logits", "weight_sparsity", "weight_streaming", "fast_build", "monitor_memory")
"""Flags that are there or not."""
LISTS = ("lora_target_modules",)

BUILD = frozenset({*LENGTHS, *WORDS, *ENABLED, *SWITCHES, *LISTS, "workers"})
CONVERT = frozenset(
    {"use_parallel_embedding", "embedding_sharding_dim", "load_model_on_cpu", "moe_tp_size", "moe_ep_size"}
)
QUANTIZE = frozenset(
    {
        "qformat",
        "dtype",
        "awq_block_size",
        "quantize_lm_head",
        "calib_batch_size",
        "calib_max_seq_length",
        "tokenizer_max_seq_length",
        "random_seed",
        "device_map",
    }
)
SERVING = frozenset(
    {
        "cuda_graph_mode",
        "cuda_graph_cache_size",
        "multi_block_mode",
        "enable_context_fmha_fp32_acc",
        "kv_cache_free_gpu_mem_fraction",
        "max_tokens_in_paged_kv_cache",
        "max_attention_window_size",
        "kv_cache_host_memory_bytes",
        "enable_kv_cache_reuse",
        "enable_chunked_context",
        "batch_scheduler_policy",
        "decoding_mode",
        "exclude_input_in_output",
        "normalize_log_probs",
        "gpu_weights_percent",
    }
)
"""What the server alone reads: nothing is built of it."""
OPTIONS = BUILD | CONVERT | QUANTIZE | SERVING | {"backend", "kv_cache_dtype"}
"""All that an engine takes."""

LLM_ARGUMENTS = frozenset(
    {
        "max_batch_size",
        "max_input_len",
        "max_seq_len",
        "max_num_tokens",
        "max_beam_width",
        "kv_cache_config",
        "cuda_graph_config",
        "enable_chunked_prefill",
        "attn_backend",
        "moe_config",
        "moe_expert_parallel_size",
        "disable_overlap_scheduler",
    }
)
PYTORCH_OPTIONS = LLM_ARGUMENTS | QUANTIZE | {"backend"}
"""All that the engine-less path takes."""
