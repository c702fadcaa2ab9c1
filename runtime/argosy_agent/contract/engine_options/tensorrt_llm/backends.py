"""Options of the two ways to serve.

`SERVING` are parameters of Triton's `tensorrtllm` backend, which change no file of an engine. `PYTORCH` are those of
the engine-less path (`backend: pytorch`): keyword arguments of `tensorrt_llm.LLM`, by their names.
"""

from argosy_agent.contract.engine_options.option import Option, choice, fields, flag, integer, integers, names, number

LOOKAHEAD = ("lookahead_window_size", "lookahead_ngram_size", "lookahead_verification_set_size")
"""The sizes that `decoding_mode: lookahead` needs, all three."""
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
    "enable_kv_cache_reuse": flag(
        "Equal beginnings of prompts share their cache.",
        default="true, if the engine has use_paged_context_fmha",
        serving=True,
    ),
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
    "lookahead_window_size": integer("Tokens of a branch that lookahead guesses at once.", serving=True),
    "lookahead_ngram_size": integer("Tokens of an n-gram that lookahead collects.", serving=True),
    "lookahead_verification_set_size": integer("The most n-grams that lookahead verifies in a step.", serving=True),
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


_GRAPHS = {
    "batch_sizes": Option(names("").kind, "Batch sizes that have a graph.", items=integer("")),
    "max_batch_size": integer("Graphs are made for batches up to this.", 0, default=0),
    "enable_padding": flag("Batches are padded to the next size that has a graph.", default=False),
}
_CACHE = {
    "dtype": choice("Keys and values are kept in this precision.", "auto", "fp8", "nvfp4", default="auto"),
    "free_gpu_memory_fraction": number("The share of free memory that the cache takes.", 0.01, 1, default=0.9),
    "max_tokens": integer("The most tokens in the cache."),
    "enable_block_reuse": flag("Equal beginnings of prompts share their cache.", default=True),
    "enable_partial_reuse": flag("Blocks that are equal in part are shared, too.", default=True),
    "host_cache_size": integer("Bytes of the host's memory for blocks.", 0, 2**53 - 1, default=0),
    "tokens_per_block": integers("Tokens in a block of the cache.", 8, 16, 32, 64, 128, default=32),
}
PYTORCH: dict[str, Option] = {
    "max_batch_size": integer("The most sequences that run at once.", default="maxBatchSize, else 2048"),
    "max_input_len": integer("The most tokens of a prompt.", default=1024),
    "max_seq_len": integer(
        "The most tokens of a prompt and its answer together.", default="what the model is made for"
    ),
    "max_num_tokens": integer("The most tokens of all sequences in one step.", default=8192),
    "max_beam_width": integer("The most beams of a search.", default=1),
    "kv_cache_config": fields("The cache of keys and values.", _CACHE),
    "cuda_graph_config": fields("CUDA graphs of generation; null: none.", _GRAPHS, nullable=True, default="on"),
    "enable_chunked_prefill": flag("Long prompts go in chunks, alongside generation.", default=False),
    "attn_backend": choice("What computes attention.", "TRTLLM", "FLASHINFER", "VANILLA", default="TRTLLM"),
    "moe_config": fields(
        "Mixtures of experts.",
        {"backend": choice("What computes them.", "CUTLASS", "CUTEDSL", "WIDEEP", "TRTLLM", "VANILLA", "TRITON")},
    ),
    "moe_expert_parallel_size": integer("GPUs that experts are shared out to.", default=1),
    "disable_overlap_scheduler": flag("A step is not prepared while the one before it runs.", default=False),
}
