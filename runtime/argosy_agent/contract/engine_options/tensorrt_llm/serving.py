"""Options of what serves an engine: parameters of Triton's `tensorrtllm` backend. They change nothing of its files."""

from argosy_agent.contract.engine_options.option import Option, choice, flag, integer, number

SERVING: dict[str, Option] = {
    "cuda_graph_mode": flag("Steps of generation run as CUDA graphs.", default=False, serving=True),
    "cuda_graph_cache_size": integer("So many CUDA graphs are kept.", 0, default=0, serving=True),
    "multi_block_mode": flag("Long sequences' attention over several blocks.", default=True, serving=True),
    "enable_context_fmha_fp32_acc": flag(
        "Fused attention over the prompt adds up in fp32.", default=False, serving=True
    ),
    "kv_cache_free_gpu_mem_fraction": number(
        "The share of the GPU's free memory that the cache takes, 0 to 1.", 0.01, 1, default=0.9, serving=True
    ),
    "max_tokens_in_paged_kv_cache": integer(
        "The most tokens in the cache.", default="what memory allows", serving=True
    ),
    "max_attention_window_size": integer("Tokens that a token looks back at.", default="all", serving=True),
    "kv_cache_host_memory_bytes": integer(
        "Bytes of the host's memory for blocks that the GPU has no room for.",
        0,
        2**53 - 1,
        default=0,
        serving=True,
    ),
    "enable_kv_cache_reuse": flag("Equal beginnings of prompts share their cache.", default=False, serving=True),
    "enable_chunked_context": flag("Long prompts go in chunks, alongside generation.", default=False, serving=True),
    "batch_scheduler_policy": choice(
        "How many sequences are taken on.",
        "guaranteed_no_evict",
        "max_utilization",
        default="guaranteed_no_evict",
        serving=True,
    ),
    "decoding_mode": choice(
        "How tokens are chosen.",
        "top_k",
        "top_p",
        "top_k_top_p",
        "beam_search",
        "lookahead",
        default="by the request",
        serving=True,
    ),
    "exclude_input_in_output": flag("Answers do not repeat the prompt.", default=False, serving=True),
    "normalize_log_probs": flag("Log-probabilities of beams are divided by length.", default=True, serving=True),
    "gpu_weights_percent": number(
        "The share of weights that stays on the GPU, 0 to 1; needs weight_streaming.",
        0,
        1,
        default=1,
        serving=True,
    ),
}
