"""What an engine must have so that a server can run it, and what the server may use of it."""

from collections.abc import Iterator, Mapping
from typing import Any

from argosy_agent.contract.engine_options.option import Fault
from argosy_agent.contract.engine_options.precisions import Precision
from argosy_agent.contract.engine_options.requested import RequestedEngine, fault

from .quantization import FP8_WEIGHTS, qformat_of

_IN_FLIGHT = "no server runs such an engine: requests join a running batch only with"
"""In-flight batching is the only way of TensorRT-LLM's executor since its static batching was removed."""


def unserved(engine: RequestedEngine) -> Iterator[Fault]:
    """Yield the options with which an engine can be built, but not served."""
    if engine.options.get("kv_cache_type") == "continuous":
        yield fault("kv_cache_type", f"is continuous, and {_IN_FLIGHT} kv_cache_type: paged; leave it out")
    if engine.off("remove_input_padding"):
        yield fault("remove_input_padding", f"is false, and {_IN_FLIGHT} packed input; leave it out")
    if engine.options.get("gpt_attention_plugin") == "disable":
        yield fault("gpt_attention_plugin", f"is disable, and {_IN_FLIGHT} this plugin; leave it out")


def paged_attention(precision: Precision | None, options: Mapping[str, Any]) -> bool:
    """Return whether the built engine has fused attention over a paged cache, without which a server can neither
    reuse blocks of the cache nor process a prompt in chunks.

    TensorRT-LLM turns it off by itself where it does not go with the cache's precision.
    """
    if options.get("use_paged_context_fmha") is False or options.get("context_fmha") is False:
        return False
    if options.get("kv_cache_type", "paged") != "paged":
        return False
    cache = options.get("kv_cache_dtype")
    fp8_weights = qformat_of(precision, options) in FP8_WEIGHTS | {"w4a8_awq", "nvfp4"}
    return cache != "int8" and (cache != "fp8" or fp8_weights)
