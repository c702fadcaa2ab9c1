"""The load of a server's key-value caches as ORCA, by which load balancers choose an endpoint, carries it in a header.

https://github.com/envoyproxy/envoy/issues/6614 has the format.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from .json.text import dumps

REQUEST_HEADER: Final = b"endpoint-load-metrics-format"
RESPONSE_HEADER: Final = "endpoint-load-metrics"
FAMILY: Final = "nv_trt_llm_kv_cache_block_metrics"
"""The metric of TensorRT-LLM's models that Triton fills the header from."""
_TYPE: Final = "kv_cache_block_type"
_UTILIZATION: Final = "kv_cache_utilization"
_CAPACITY: Final = "max_token_capacity"


@dataclass(frozen=True, slots=True)
class CacheLoad:
    """The share (0 to 1) of key-value caches in use, and how many tokens they hold."""

    utilization: float
    tokens: int


def load_of_blocks(samples: Iterable[tuple[Mapping[str, str], float]]) -> CacheLoad | None:
    """Return the load by the samples of FAMILY; None where one is missing."""
    values = {labels.get(_TYPE): value for labels, value in samples}
    counts = [values.get(kind) for kind in ("tokens_per", "used", "max")]
    if any(value is None or value < 0 for value in counts):
        return None
    tokens, used, most = (value or 0.0 for value in counts)
    return CacheLoad(used / most if most else 0.0, int(most * tokens))


def load_header(encoding: str, load: CacheLoad) -> str:
    """Return the value of the header encoded as text or json; it is empty for any other encoding."""
    if encoding == "json":
        named = {_UTILIZATION: load.utilization, _CAPACITY: load.tokens}
        return "JSON " + dumps({"named_metrics": named}).decode()
    if encoding == "text":
        return f"TEXT named_metrics.{_UTILIZATION}={load.utilization:f}, named_metrics.{_CAPACITY}={load.tokens}"
    return ""
