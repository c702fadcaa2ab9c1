"""Configurations of the LLM API, with the fields that 1.2 has."""

from dataclasses import dataclass, fields
from enum import Enum
from typing import Any

from standin import typed


class RequestError(RuntimeError):
    """One request failed."""


@dataclass
class KvCacheConfig:
    enable_block_reuse: bool = True
    max_tokens: int | None = None
    max_attention_window: list[int] | None = None
    sink_token_length: int | None = None
    free_gpu_memory_fraction: float = 0.9
    host_cache_size: int | None = None
    onboard_blocks: bool = True
    cross_kv_cache_fraction: float | None = None
    secondary_offload_min_priority: int | None = None
    event_buffer_max_size: int = 0
    attention_dp_events_gather_period_ms: int = 5
    enable_partial_reuse: bool = True
    copy_on_partial_reuse: bool = True
    use_uvm: bool = False
    max_gpu_total_bytes: int = 0
    dtype: str = "auto"
    mamba_ssm_cache_dtype: str = "auto"
    tokens_per_block: int = 32

    def __post_init__(self) -> None:
        typed("max_attention_window", self.max_attention_window, None, list)
        typed("free_gpu_memory_fraction", self.free_gpu_memory_fraction, float)
        for name in ("max_tokens", "sink_token_length", "host_cache_size"):
            typed(name, getattr(self, name), None, int)
        typed("max_gpu_total_bytes", self.max_gpu_total_bytes, int)
        typed("enable_block_reuse", self.enable_block_reuse, bool)


class CapacitySchedulerPolicy(Enum):
    MAX_UTILIZATION = "MAX_UTILIZATION"
    GUARANTEED_NO_EVICT = "GUARANTEED_NO_EVICT"
    STATIC_BATCH = "STATIC_BATCH"


@dataclass
class SchedulerConfig:
    capacity_scheduler_policy: CapacitySchedulerPolicy = CapacitySchedulerPolicy.GUARANTEED_NO_EVICT
    context_chunking_policy: Any = None
    dynamic_batch_config: Any = None

    def __post_init__(self) -> None:
        typed("capacity_scheduler_policy", self.capacity_scheduler_policy, CapacitySchedulerPolicy)


@dataclass
class ExtendedRuntimePerfKnobConfig:
    multi_block_mode: bool = True
    enable_context_fmha_fp32_acc: bool = False
    cuda_graph_mode: bool = False
    cuda_graph_cache_size: int = 0


@dataclass
class LookaheadDecodingConfig:
    max_window_size: int = 4
    max_ngram_size: int = 3
    max_verification_set_size: int = 4


@dataclass(kw_only=True)
class GuidedDecodingParams:
    json: str | dict[str, Any] | None = None
    regex: str | None = None
    grammar: str | None = None
    json_object: bool = False
    structural_tag: str | None = None

    def __post_init__(self) -> None:
        guides = sum(bool(getattr(self, field.name)) for field in fields(self))
        if guides != 1:
            raise ValueError(f"Only one guide can be used for a request, but got {guides}.")
