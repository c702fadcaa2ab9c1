"""Arguments of an engine, some of them."""

from dataclasses import dataclass


@dataclass
class AsyncEngineArgs:
    """Checks types as the real one does not: a test is to see what a wrong one is."""

    model: str = "Qwen/Qwen3-0.6B"
    tokenizer: str | None = None
    trust_remote_code: bool = False
    dtype: str = "auto"
    max_model_len: int | None = None
    tensor_parallel_size: int = 1
    pipeline_parallel_size: int = 1
    runner: str = "auto"
    max_num_seqs: int | None = None
    gpu_memory_utilization: float = 0.92
    kv_cache_memory_bytes: int | None = None
    enforce_eager: bool = False
    enable_prefix_caching: bool | None = None
    scheduling_policy: str = "fcfs"
    enable_lora: bool = False
    max_loras: int = 1
    max_lora_rank: int = 16
    enable_sleep_mode: bool = False
    disable_log_stats: bool = False
    enable_log_requests: bool = False

    def __post_init__(self):
        for name in ("max_model_len", "tensor_parallel_size", "max_num_seqs", "max_loras", "max_lora_rank"):
            value = getattr(self, name)
            if value is not None and type(value) is not int:
                raise ValueError(f"{name} must be an int, not {value!r}")
        for name in ("enable_lora", "enforce_eager", "enable_sleep_mode", "disable_log_stats"):
            if type(getattr(self, name)) is not bool:
                raise ValueError(f"{name} must be a bool, not {getattr(self, name)!r}")
