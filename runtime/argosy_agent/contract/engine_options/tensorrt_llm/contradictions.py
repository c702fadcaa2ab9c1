"""Contradictions between TensorRT-LLM's options, many of which the tool itself would change without an error."""

from collections.abc import Iterator

from argosy_agent.contract.engine_options.option import Fault
from argosy_agent.contract.engine_options.precisions import Precision
from argosy_agent.contract.engine_options.requested import DeclaredSizes, RequestedEngine, fault

from .backends import LOOKAHEAD
from .quantization import AWQ, FP8_WEIGHTS, OF_CALIBRATION, QFORMATS, asks_for_calibration, qformat_of
from .served import paged_attention, unserved


def contradictions(engine: RequestedEngine) -> Iterator[Fault]:
    """Yield all that cannot be so together, relative to the engine."""
    for check in (_lengths, _formats, _calibration, unserved, _cache, _attention, _plugins, _guesses, _serving):
        yield from check(engine)


def parallel_contradictions(engine: RequestedEngine, sizes: DeclaredSizes) -> Iterator[Fault]:
    """Yield what contradicts `parallelism` and `maxBatchSize`, relative to the engine."""
    if engine.has("max_batch_size") and engine.number("max_batch_size") < sizes.batch_size:
        yield fault(
            "max_batch_size",
            f"is {engine.number('max_batch_size')}, and maxBatchSize is {sizes.batch_size}: batches of that size would "
            "not fit into the engine; raise it, or leave it out",
        )
    for name in ("reduce_fusion", "user_buffer", "gemm_allreduce_plugin"):
        if engine.options.get(name, False) not in (False, "disable") and sizes.tensor == 1:
            yield fault(name, "joins what several GPUs add up, and parallelism.tensor is 1; leave it out")
    if engine.on("pp_reduce_scatter") and sizes.pipeline == 1:
        yield fault("pp_reduce_scatter", "is between stages, and parallelism.pipeline is 1; leave it out")
    yield from _experts(engine, sizes)


def _experts(engine: RequestedEngine, sizes: DeclaredSizes) -> Iterator[Fault]:
    tensor, expert = engine.number("moe_tp_size", 0), engine.number("moe_ep_size", 0)
    expert = expert or engine.number("moe_expert_parallel_size", 0)
    if tensor and expert and tensor * expert != sizes.tensor:
        yield fault(
            "moe_tp_size",
            f"moe_tp_size {tensor} x moe_ep_size {expert} is {tensor * expert}, and must be parallelism.tensor, "
            f"{sizes.tensor}",
        )
        return
    for name in ("moe_tp_size", "moe_ep_size", "moe_expert_parallel_size"):
        if engine.has(name) and sizes.tensor % engine.number(name, 1):
            yield fault(name, f"is {engine.number(name)}, and must divide parallelism.tensor, {sizes.tensor}")


def _lengths(engine: RequestedEngine) -> Iterator[Fault]:
    longest, tokens = engine.number("max_seq_len"), engine.number("max_num_tokens")
    if longest and engine.number("max_input_len") > longest:
        yield fault(
            "max_input_len",
            f"is {engine.number('max_input_len')}, more than max_seq_len {longest}, which counts prompt and answer; "
            "lower it, or raise max_seq_len",
        )
    most = longest * engine.number("max_batch_size")
    if most and tokens > most:
        yield fault(
            "max_num_tokens",
            f"is {tokens}, more than max_seq_len {longest} x max_batch_size {engine.number('max_batch_size')} = {most} "
            "tokens ever come to; lower it",
        )
    if tokens and engine.number("opt_num_tokens") > tokens:
        yield fault(
            "opt_num_tokens", f"is {engine.number('opt_num_tokens')}, more than max_num_tokens {tokens}; lower it"
        )
    if engine.on("multiple_profiles") and engine.has("opt_num_tokens"):
        yield fault("opt_num_tokens", "means nothing with multiple_profiles, which tunes for several; leave one out")


def _formats(engine: RequestedEngine) -> Iterator[Fault]:
    qformat = qformat_of(engine.precision, engine.options)
    if engine.has("qformat"):
        yield from _format_of_the_precision(engine, qformat)
    if engine.has("dtype") and engine.precision is not None and QFORMATS.get(engine.precision) == ("full_prec",):
        yield fault("dtype", f"is decided by precision, {engine.precision}; leave it out")
    if engine.has("awq_block_size") and qformat not in AWQ:
        yield fault("awq_block_size", f"belongs to int4_awq and w4a8_awq, not to {qformat or 'the model as it is'}")
    if engine.on("quantize_lm_head") and qformat != "fp8":
        yield fault("quantize_lm_head", f"is of fp8 alone, not of {qformat or 'the model as it is'}; leave it out")
    if engine.number("moe_ep_size", 1) > 1 and asks_for_calibration(engine.precision, engine.options):
        yield fault(
            "moe_ep_size", "goes with no format that is calibrated; leave it out, or take a format without data"
        )


def _format_of_the_precision(engine: RequestedEngine, qformat: str) -> Iterator[Fault]:
    if engine.precision is None:
        meant = next((str(precision) for precision, formats in QFORMATS.items() if qformat in formats), "")
        if qformat != "full_prec":
            yield fault("qformat", f"needs spec.engine.precision: {meant}, so that its accuracy is checked")
    elif qformat not in QFORMATS.get(engine.precision, ()):
        formats = " or ".join(QFORMATS.get(engine.precision, ()))
        yield fault("qformat", f"is {qformat}, and precision {engine.precision} is {formats}; change one of them")


def _calibration(engine: RequestedEngine) -> Iterator[Fault]:
    asks = asks_for_calibration(engine.precision, engine.options)
    if asks and not engine.calibrated:
        yield Fault(
            f"is required: {asks} finds its ranges in data; set calibration.dataUri to prompts as the model will get "
            "them",
            ("calibration",),
        )
    if asks:
        return
    if engine.calibrated:
        what = qformat_of(engine.precision, engine.options) or "the model as it is"
        yield Fault(f"is without effect: {what} finds nothing in data; leave it out", ("calibration",))
    for name in OF_CALIBRATION:
        if engine.has(name):
            yield fault(name, "is without effect, as nothing is calibrated; leave it out")


def _cache(engine: RequestedEngine) -> Iterator[Fault]:
    if engine.options.get("kv_cache_type") != "disabled":
        return
    for name in ("tokens_per_block", "enable_kv_cache_reuse", "enable_chunked_context"):
        if engine.has(name) and not engine.off(name):
            yield fault(name, "needs kv_cache_type: paged, and it is disabled; change one of them")
    if engine.on("use_paged_context_fmha"):
        yield fault("use_paged_context_fmha", "needs kv_cache_type: paged, and it is disabled; change one of them")
    if engine.has("kv_cache_dtype"):
        yield fault("kv_cache_dtype", "is the precision of a cache, and kv_cache_type is disabled; leave one out")


def _attention(engine: RequestedEngine) -> Iterator[Fault]:
    qformat, cache = qformat_of(engine.precision, engine.options), engine.options.get("kv_cache_dtype")
    fp8 = qformat in FP8_WEIGHTS | {"w4a8_awq", "nvfp4"}
    if engine.on("use_paged_context_fmha"):
        if engine.off("context_fmha"):
            yield fault("use_paged_context_fmha", "needs context_fmha, which is false; change one of them")
        if cache == "int8" or (cache == "fp8" and not fp8):
            weights = qformat or "those of the model"
            yield fault(
                "use_paged_context_fmha",
                f"does not go with kv_cache_dtype {cache} and weights of {weights}; set it to false",
            )
    if engine.on("use_fp8_context_fmha") and not (fp8 and cache == "fp8"):
        yield fault("use_fp8_context_fmha", "needs precision fp8 and kv_cache_dtype: fp8; leave it out")
    for name in ("enable_kv_cache_reuse", "enable_chunked_context"):
        if not engine.on(name) or paged_attention(engine.precision, engine.options):
            continue
        if engine.off("use_paged_context_fmha") or engine.off("context_fmha"):
            yield fault(name, "needs context_fmha and use_paged_context_fmha; set neither to false")
        elif engine.options.get("kv_cache_type") != "disabled":
            yield fault(name, f"needs use_paged_context_fmha, which kv_cache_dtype {cache} does not go with here")


def _plugins(engine: RequestedEngine) -> Iterator[Fault]:
    precisions = {"fp8": Precision.FP8, "nvfp4": Precision.FP4}
    for name, value in engine.options.items():
        needed = precisions.get(value) if name.endswith("_plugin") and isinstance(value, str) else None
        if needed is not None and engine.precision is not needed:
            yield fault(name, f"is {value}, and spec.engine.precision is not {needed}; change one of them")
    for name in ("max_lora_rank", "lora_target_modules"):
        if engine.has(name) and engine.options.get("lora_plugin", "disable") == "disable":
            yield fault(name, "needs lora_plugin, such as auto; set it, or leave this out")


def _guesses(engine: RequestedEngine) -> Iterator[Fault]:
    draft = engine.number("max_draft_len")
    if draft and not engine.has("speculative_decoding_mode"):
        yield fault("max_draft_len", "needs speculative_decoding_mode, which says how tokens are guessed")
    if engine.has("speculative_decoding_mode") and not draft:
        yield fault("speculative_decoding_mode", "needs max_draft_len, 1 or more")
    if draft and engine.on("gather_context_logits"):
        yield fault("gather_context_logits", "does not go with max_draft_len; leave one of them out")
    yield from _lookahead(engine, draft)


def _lookahead(engine: RequestedEngine, draft: int) -> Iterator[Fault]:
    """Yield the errors of `decoding_mode: lookahead`: its sizes, and whether the engine was built for them."""
    decodes = engine.options.get("decoding_mode") == "lookahead"
    missing = [name for name in LOOKAHEAD if not engine.has(name)]
    if not decodes:
        for name in LOOKAHEAD:
            if engine.has(name):
                yield fault(name, "needs decoding_mode: lookahead; set it, or leave this out")
    elif missing:
        yield fault("decoding_mode", f"is lookahead, which needs {', '.join(missing)}; set all three sizes")
    elif engine.options.get("speculative_decoding_mode") != "lookahead_decoding":
        yield fault("decoding_mode", "is lookahead, which needs speculative_decoding_mode: lookahead_decoding; set it")
    else:
        needed = lookahead_draft(*(engine.number(name) for name in LOOKAHEAD))
        if draft and draft < needed:
            yield fault("max_draft_len", f"is {draft}, and lookahead of these sizes guesses {needed} tokens; raise it")


def lookahead_draft(window: int, ngram: int, verified: int) -> int:
    """Return the most tokens that lookahead guesses in a step, by its three sizes."""
    return max(0, ngram - 2) + (window - 1 + verified) * (ngram - 1)


def _serving(engine: RequestedEngine) -> Iterator[Fault]:
    if engine.number("cuda_graph_cache_size") and not engine.on("cuda_graph_mode"):
        yield fault("cuda_graph_cache_size", "needs cuda_graph_mode: true")
    if engine.options.get("gpu_weights_percent", 1) != 1 and not engine.on("weight_streaming"):
        yield fault("gpu_weights_percent", "needs weight_streaming: true, so that weights may stay off the GPU")
    graphs = engine.options.get("cuda_graph_config")
    if isinstance(graphs, dict) and graphs.get("batch_sizes") and graphs.get("max_batch_size"):
        yield fault("cuda_graph_config", "batch_sizes and max_batch_size exclude each other; keep one")
