from dataclasses import dataclass


@dataclass
class KvCacheConfig:
    enable_block_reuse: bool = True
    max_tokens: int | None = None
    free_gpu_memory_fraction: float = 0.9
    host_cache_size: int | None = None
    dtype: str = "auto"
    tokens_per_block: int = 32
    enable_partial_reuse: bool = True
