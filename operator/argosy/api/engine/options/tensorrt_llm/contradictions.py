"""What contradicts what among TensorRT-LLM's options: much of it the tool itself would change without an error."""

from collections.abc import Iterator

from argosy.api.engine.options.asked import Asked, Split, wrong
from argosy.api.engine.precision import Precision
from argosy.api.values.base import Fault

from .quantization import AWQ, FP8_WEIGHTS, OF_CALIBRATION, QFORMATS, asks_for_calibration, qformat_of

BATCHES = 2048
"""TensorRT-LLM's max_batch_size where nobody sets it."""


def contradictions(asked: Asked) -> Iterator[Fault]:
    """Yield all that cannot be so together, relative to the engine."""
    for check in (_lengths, _formats, _calibration, _cache, _attention, _plugins, _guesses, _serving):
        yield from check(asked)


def parallel_contradictions(asked: Asked, split: Split) -> Iterator[Fault]:
    """Yield what contradicts `parallelism` and `maxBatchSize`, relative to the engine."""
    if asked.has("max_batch_size") and asked.number("max_batch_size") < split.batch_size:
        yield wrong(
            "max_batch_size",
            f"is {asked.number('max_batch_size')}, and maxBatchSize is {split.batch_size}: batches of that size would "
            "not fit into the engine; raise it, or leave it out",
        )
    for name in ("reduce_fusion", "user_buffer", "gemm_allreduce_plugin"):
        if asked.options.get(name, False) not in (False, "disable") and split.tensor == 1:
            yield wrong(name, "joins what several GPUs add up, and parallelism.tensor is 1; leave it out")
    if asked.on("pp_reduce_scatter") and split.pipeline == 1:
        yield wrong("pp_reduce_scatter", "is between stages, and parallelism.pipeline is 1; leave it out")
    yield from _experts(asked, split)


def _experts(asked: Asked, split: Split) -> Iterator[Fault]:
    tensor, expert = asked.number("moe_tp_size", 0), asked.number("moe_ep_size", 0)
    expert = expert or asked.number("moe_expert_parallel_size", 0)
    if tensor and expert and tensor * expert != split.tensor:
        yield wrong(
            "moe_tp_size",
            f"moe_tp_size {tensor} x moe_ep_size {expert} is {tensor * expert}, and must be parallelism.tensor, "
            f"{split.tensor}",
        )
        return
    for name in ("moe_tp_size", "moe_ep_size", "moe_expert_parallel_size"):
        if asked.has(name) and split.tensor % asked.number(name, 1):
            yield wrong(name, f"is {asked.number(name)}, and must divide parallelism.tensor, {split.tensor}")


def _lengths(asked: Asked) -> Iterator[Fault]:
    longest, tokens = asked.number("max_seq_len"), asked.number("max_num_tokens")
    if longest and asked.number("max_input_len") > longest:
        yield wrong(
            "max_input_len",
            f"is {asked.number('max_input_len')}, more than max_seq_len {longest}, which counts prompt and answer; "
            "lower it, or raise max_seq_len",
        )
    most = longest * asked.number("max_batch_size")
    if most and tokens > most:
        yield wrong(
            "max_num_tokens",
            f"is {tokens}, more than max_seq_len {longest} x max_batch_size {asked.number('max_batch_size')} = {most} "
            "tokens ever come to; lower it",
        )
    if tokens and asked.number("opt_num_tokens") > tokens:
        yield wrong(
            "opt_num_tokens", f"is {asked.number('opt_num_tokens')}, more than max_num_tokens {tokens}; lower it"
        )
    if asked.on("multiple_profiles") and asked.has("opt_num_tokens"):
        yield wrong("opt_num_tokens", "means nothing with multiple_profiles, which tunes for several; leave one out")


def _formats(asked: Asked) -> Iterator[Fault]:
    qformat = qformat_of(asked.precision, asked.options)
    if asked.has("qformat"):
        yield from _format_of_the_precision(asked, qformat)
    if asked.has("dtype") and asked.precision is not None and QFORMATS.get(asked.precision) == ("full_prec",):
        yield wrong("dtype", f"is decided by precision, {asked.precision}; leave it out")
    if asked.has("awq_block_size") and qformat not in AWQ:
        yield wrong("awq_block_size", f"belongs to int4_awq and w4a8_awq, not to {qformat or 'the model as it is'}")
    if asked.on("quantize_lm_head") and qformat != "fp8":
        yield wrong("quantize_lm_head", f"is of fp8 alone, not of {qformat or 'the model as it is'}; leave it out")
    if asked.number("moe_ep_size", 1) > 1 and asks_for_calibration(asked.precision, asked.options):
        yield wrong(
            "moe_ep_size", "goes with no format that is calibrated; leave it out, or take a format without data"
        )


def _format_of_the_precision(asked: Asked, qformat: str) -> Iterator[Fault]:
    if asked.precision is None:
        meant = next((str(each) for each, formats in QFORMATS.items() if qformat in formats), "")
        if qformat != "full_prec":
            yield wrong("qformat", f"needs spec.engine.precision: {meant}, so that its accuracy is checked")
    elif qformat not in QFORMATS.get(asked.precision, ()):
        formats = " or ".join(QFORMATS.get(asked.precision, ()))
        yield wrong("qformat", f"is {qformat}, and precision {asked.precision} is {formats}; change one of them")


def _calibration(asked: Asked) -> Iterator[Fault]:
    asks = asks_for_calibration(asked.precision, asked.options)
    if asks and not asked.calibrated:
        yield Fault(
            f"is required: {asks} finds its ranges in data; set calibration.dataUri to prompts as the model will get "
            "them",
            ("calibration",),
        )
    if asks:
        return
    if asked.calibrated:
        what = qformat_of(asked.precision, asked.options) or "the model as it is"
        yield Fault(f"is without effect: {what} finds nothing in data; leave it out", ("calibration",))
    for name in OF_CALIBRATION:
        if asked.has(name):
            yield wrong(name, "is without effect, as nothing is calibrated; leave it out")


def _cache(asked: Asked) -> Iterator[Fault]:
    kind = asked.options.get("kv_cache_type", "paged")
    if kind != "paged":
        for name in ("tokens_per_block", "enable_kv_cache_reuse", "enable_chunked_context"):
            if asked.has(name) and not asked.off(name):
                yield wrong(name, f"needs kv_cache_type: paged, and it is {kind}; change one of them")
        if asked.on("use_paged_context_fmha"):
            yield wrong("use_paged_context_fmha", f"needs kv_cache_type: paged, and it is {kind}; change one of them")
    if kind == "disabled" and asked.has("kv_cache_dtype"):
        yield wrong("kv_cache_dtype", "is the precision of a cache, and kv_cache_type is disabled; leave one out")


def _attention(asked: Asked) -> Iterator[Fault]:
    qformat, cache = qformat_of(asked.precision, asked.options), asked.options.get("kv_cache_dtype")
    fp8 = qformat in FP8_WEIGHTS | {"w4a8_awq", "nvfp4"}
    if asked.on("use_paged_context_fmha"):
        if asked.off("context_fmha"):
            yield wrong("use_paged_context_fmha", "needs context_fmha, which is false; change one of them")
        if cache == "int8" or (cache == "fp8" and not fp8):
            weights = qformat or "those of the model"
            yield wrong(
                "use_paged_context_fmha",
                f"does not go with kv_cache_dtype {cache} and weights of {weights}; set it to false",
            )
    if asked.on("use_fp8_context_fmha") and not (fp8 and cache == "fp8"):
        yield wrong("use_fp8_context_fmha", "needs precision fp8 and kv_cache_dtype: fp8; leave it out")
    for name in ("enable_kv_cache_reuse", "enable_chunked_context"):
        if not asked.on(name):
            continue
        if asked.off("use_paged_context_fmha") or asked.off("context_fmha"):
            yield wrong(name, "needs context_fmha and use_paged_context_fmha; set neither to false")
        elif cache == "int8" or (cache == "fp8" and not fp8):
            yield wrong(name, f"needs use_paged_context_fmha, which kv_cache_dtype {cache} does not go with here")


def _plugins(asked: Asked) -> Iterator[Fault]:
    forms = {"fp8": Precision.FP8, "nvfp4": Precision.FP4}
    for name, value in asked.options.items():
        needed = forms.get(value) if name.endswith("_plugin") and isinstance(value, str) else None
        if needed is not None and asked.precision is not needed:
            yield wrong(name, f"is {value}, and spec.engine.precision is not {needed}; change one of them")
    for name in ("max_lora_rank", "lora_target_modules"):
        if asked.has(name) and asked.options.get("lora_plugin", "disable") == "disable":
            yield wrong(name, "needs lora_plugin, such as auto; set it, or leave this out")


def _guesses(asked: Asked) -> Iterator[Fault]:
    draft = asked.number("max_draft_len")
    if draft and not asked.has("speculative_decoding_mode"):
        yield wrong("max_draft_len", "needs speculative_decoding_mode, which says how tokens are guessed")
    if asked.has("speculative_decoding_mode") and not draft:
        yield wrong("speculative_decoding_mode", "needs max_draft_len, 1 or more")
    if draft and asked.on("gather_context_logits"):
        yield wrong("gather_context_logits", "does not go with max_draft_len; leave one of them out")


def _serving(asked: Asked) -> Iterator[Fault]:
    if asked.number("cuda_graph_cache_size") and not asked.on("cuda_graph_mode"):
        yield wrong("cuda_graph_cache_size", "needs cuda_graph_mode: true")
    if asked.options.get("gpu_weights_percent", 1) != 1 and not asked.on("weight_streaming"):
        yield wrong("gpu_weights_percent", "needs weight_streaming: true, so that weights may stay off the GPU")
    graphs = asked.options.get("cuda_graph_config")
    if isinstance(graphs, dict) and graphs.get("batch_sizes") and graphs.get("max_batch_size"):
        yield wrong("cuda_graph_config", "batch_sizes and max_batch_size exclude each other; keep one")
