"""What the engine reports of itself, and this backend of the engine."""

import logging
from collections.abc import Callable, Sequence
from typing import Any

from argosy_runtime.backends.contract import Host
from argosy_runtime.backends.engines.meter import EngineMeter
from argosy_runtime.backends.engines.state import AdapterState, EngineState

_log = logging.getLogger(__name__)


class EngineReports:
    """The newest state of an engine. vLLM calls `record` after every step, and does not promise the fields it reads.

    `after_step` is called then, too, once the outputs of the step are with their requests. What it raises is logged:
    vLLM would fail all requests of the engine for it. `cache_config` is vLLM's own, and has the
    cache's size once the engine has started.
    """

    def __init__(self, most_adapters: int) -> None:
        self._meter = EngineMeter()
        self._most_adapters = most_adapters
        self._schedulers: dict[int, Any] = {}
        self._prompt_tokens = self._generated_tokens = self._cached_tokens = self._preemptions = 0
        self._asleep = False
        self._is_new = True
        self.after_step: Callable[[], None] | None = None
        self.cache_config: Any = None

    def record(self, scheduler: Any, iteration: Any, engine: int = 0) -> None:
        """Take a `SchedulerStats` and an `IterationStats` of an engine (with data parallelism there are several).

        Either may be None.
        """
        try:
            if self.after_step is not None:
                self.after_step()
        except Exception:
            _log.exception("the outputs of a step could not all be sent")
        self._is_new = True
        if scheduler is not None:
            self._schedulers[engine] = scheduler
        if iteration is not None:
            self._record_iteration(iteration)

    def _record_iteration(self, iteration: Any) -> None:
        self._prompt_tokens += iteration.num_prompt_tokens
        self._generated_tokens += iteration.num_generation_tokens
        self._preemptions += iteration.num_preempted_reqs
        prompts = getattr(iteration, "prompt_token_stats", None)
        self._cached_tokens += getattr(prompts, "cached_tokens", 0)
        meter = self._meter
        for seconds in iteration.time_to_first_tokens_iter:
            meter.add_first_token(seconds)
        for seconds in iteration.inter_token_latencies_iter:
            meter.add_between_tokens(seconds)
        for request in iteration.finished_requests:
            meter.add_waited(request.queued_time)
            meter.add_answered(
                request.e2e_latency,
                request.num_prompt_tokens,
                request.num_generation_tokens,
                getattr(request, "num_cached_tokens", 0),
            )

    def note_sleep(self, asleep: bool) -> None:
        """Note whether the engine sleeps."""
        self._asleep = asleep
        self._is_new = True

    def send(self, host: Host) -> None:
        """Report the state, if it is new."""
        if not self._is_new:
            return
        self._is_new = False
        host.report(self._state())

    def _state(self) -> EngineState:
        schedulers = list(self._schedulers.values())
        return EngineState(
            sum(_waiting(scheduler) for scheduler in schedulers),
            sum(scheduler.num_running_reqs for scheduler in schedulers),
            max([scheduler.kv_cache_usage for scheduler in schedulers], default=None),
            self._prompt_tokens,
            self._generated_tokens,
            cached_tokens=self._cached_tokens,
            preemptions=self._preemptions,
            asleep=self._asleep,
            adapters=self._adapters(schedulers) if self._most_adapters else None,
            times=self._meter.take(),
            cache_tokens=_cache_tokens(self.cache_config),
        )

    def _adapters(self, schedulers: Sequence[Any]) -> AdapterState:
        running = {name for scheduler in schedulers for name in getattr(scheduler, "running_lora_adapters", ())}
        waiting = {name for scheduler in schedulers for name in getattr(scheduler, "waiting_lora_adapters", ())}
        return AdapterState(sorted(running), sorted(waiting), self._most_adapters)


def _waiting(scheduler: Any) -> int:
    return int(scheduler.num_waiting_reqs) + int(getattr(scheduler, "num_skipped_waiting_reqs", 0))


def _cache_tokens(config: Any) -> int | None:
    """Return how many tokens a cache holds: as vLLM counts them, in releases that do not by its blocks."""
    blocks = getattr(config, "num_gpu_blocks", None) or 0
    tokens = getattr(config, "kv_cache_size_tokens", None) or blocks * (getattr(config, "block_size", None) or 0)
    return int(tokens) or None


def stat_logger_class(base: Any, reports: EngineReports) -> Any:
    """Return the class of the only logger that vLLM then makes. `base` is its `PrometheusStatLogger`.

    Without a logger of that class vLLM adds one, whose metrics nothing reads here.
    """

    class Reporter(base):  # type: ignore[misc]  # vLLM has no types here
        """Passes the statistics of every step on, and has none of the metrics of `base`."""

        def __init__(self, vllm_config: Any, engine_indexes: list[int] | None = None) -> None:
            """Register no metrics, and note where the cache's size will be."""
            reports.cache_config = getattr(vllm_config, "cache_config", None)

        def record(
            self, scheduler_stats: Any, iteration_stats: Any, mm_cache_stats: Any = None, engine_idx: int = 0
        ) -> None:
            """Take the statistics of a step."""
            reports.record(scheduler_stats, iteration_stats, engine_idx)

        def record_admission_rejection(self, reason: str) -> None:
            """Take no note of a refusal, which its request is answered with."""

        def record_sleep_state(self, sleep: int = 0, level: int = 0) -> None:
            """Take no note of sleep, which the server commands."""

        def log_engine_initialized(self) -> None:
            """Take no note of the start."""

    return Reporter
