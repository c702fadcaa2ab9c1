"""Loggers of statistics."""

from abc import ABC, abstractmethod


class StatLoggerBase(ABC):
    @abstractmethod
    def __init__(self, vllm_config, engine_index=0): ...

    @abstractmethod
    def record(self, scheduler_stats, iteration_stats, mm_cache_stats=None, engine_idx=0): ...

    @abstractmethod
    def log_engine_initialized(self): ...

    def log(self):
        """Do nothing."""
        return

    def record_sleep_state(self, is_awake, level):
        """Do nothing."""
        return
