"""The load of a server's key-value caches as ORCA, by which load balancers choose an endpoint, carries it in a header.

https://github.com/envoyproxy/envoy/issues/6614 has the format; Triton fills it for TensorRT-LLM's models.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from .json.text import dumps

REQUEST_HEADER: Final = b"endpoint-load-metrics-format"
RESPONSE_HEADER: Final = "endpoint-load-metrics"
FAMILY: Final = "nv_trt_llm_kv_cache_block_metrics"
_TYPE: Final = "kv_cache_block_type"
_UTILIZATION: Final = "kv_cache_utilization"
_CAPACITY: Final = "max_token_capacity"


def load_header(encoding: str, samples: Iterable[tuple[Mapping[str, str], float]]) -> str:
    """Return the value of the header encoded as text or json, from the samples of FAMILY.

    It is empty for any other encoding, and where a sample is missing.
    """
    values = {labels.get(_TYPE): value for labels, value in samples}
    counts = [values.get(kind) for kind in ("tokens_per", "used", "max")]
    if any(value is None or value < 0 for value in counts):
        return ""
    tokens, used, most = (value or 0.0 for value in counts)
    utilization = used / most if most else 0.0
    capacity = int(most * tokens)
    if encoding == "json":
        return "JSON " + dumps({"named_metrics": {_UTILIZATION: utilization, _CAPACITY: capacity}}).decode()
    if encoding == "text":
        return f"TEXT named_metrics.{_UTILIZATION}={utilization:f}, named_metrics.{_CAPACITY}={capacity}"
    return ""
