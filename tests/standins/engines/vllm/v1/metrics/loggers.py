"""Loggers of statistics."""


class PrometheusStatLogger:
    def __init__(self, vllm_config, engine_indexes=None):
        raise AssertionError("the metrics of vLLM are registered")

    def record(self, scheduler_stats, iteration_stats, mm_cache_stats=None, engine_idx=0):
        raise AssertionError("the metrics of vLLM are counted")

    def record_admission_rejection(self, reason):
        raise AssertionError("the metrics of vLLM are counted")

    def record_sleep_state(self, sleep=0, level=0):
        raise AssertionError("the metrics of vLLM are counted")

    def log_engine_initialized(self):
        raise AssertionError("the metrics of vLLM are counted")

    def log(self):
        """Do nothing."""
        return
