"""vLLM's metrics (`vllm:*`), made of the statistics of engines when they are scraped: its names, labels and units.

Dashboards, autoscalers and endpoint pickers read these names. Labels are `model_name` and `engine`, the number of an
instance in its model version, and in addition `version` and a configuration's `metric_tags`.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from argosy_runtime.backends.engines.state import EngineState

from .engine_families import EngineHistogram, histogram_families
from .engines import EngineCounters, cache_share
from .exposition import Family, Labels
from .series import ModelSeries

_SLEEP_STATES: Final = ("awake", "weights_offloaded", "discard_all")
"""vLLM's. The last one, its level 2, is not used here, and is there for what reads vLLM's metrics."""
"""By the level of sleep."""

_Engine = tuple[Labels, EngineCounters, EngineState | None]

_COUNTERS: Final[Sequence[tuple[str, str, Callable[[EngineCounters], int]]]] = (
    ("prompt_tokens", "Number of prefill tokens processed.", lambda engine: engine.prompt_tokens),
    ("prompt_tokens_cached", "Number of cached prompt tokens.", lambda engine: engine.cached_tokens),
    ("generation_tokens", "Number of generation tokens processed.", lambda engine: engine.generated_tokens),
    ("num_preemptions", "Cumulative number of preemptions of the engine.", lambda engine: engine.preemptions),
)
_HISTOGRAMS: Final[Sequence[EngineHistogram]] = (
    (
        "vllm:time_to_first_token_seconds",
        "Histogram of time to first token in seconds.",
        lambda engine: engine.first_token,
    ),
    (
        "vllm:inter_token_latency_seconds",
        "Histogram of inter-token latency in seconds.",
        lambda engine: engine.between_tokens,
    ),
    (
        "vllm:e2e_request_latency_seconds",
        "Histogram of end to end request latency in seconds.",
        lambda engine: engine.answered,
    ),
    (
        "vllm:request_queue_time_seconds",
        "Histogram of time spent in WAITING phase for request.",
        lambda engine: engine.waited,
    ),
    (
        "vllm:request_prompt_tokens",
        "Number of prefill tokens processed.",
        lambda engine: engine.request_prompt_tokens,
    ),
    (
        "vllm:request_generation_tokens",
        "Number of generation tokens processed.",
        lambda engine: engine.request_generated_tokens,
    ),
)


def vllm_families(models: Sequence[ModelSeries], unix_seconds: float) -> list[Family]:
    """Return the families of the engines of all models; `unix_seconds` is the time now."""
    engines = [engine for model in models for engine in _engines(model)]
    alive = [(labels, state) for labels, _, state in engines if state is not None]
    return [
        *_gauges(alive),
        _sleep_state(alive),
        _adapters(alive, unix_seconds),
        *_counters(engines),
        *_prefix_cache(engines),
        *histogram_families(_HISTOGRAMS, [(labels, counters) for labels, counters, _ in engines]),
    ]


def _engines(model: ModelSeries) -> Iterator[_Engine]:
    if model.service is None or model.service.engine is None:
        return
    others = {name: value for name, value in model.labels.items() if name != "model"}
    for number, (instance, counters) in enumerate(model.statistics.engines.counters.items()):
        labels = Labels({"model_name": model.labels["model"], "engine": str(number), **others})
        yield labels, counters, model.service.engine.states.get(instance)


def _gauges(engines: Sequence[tuple[Labels, EngineState]]) -> list[Family]:
    running = Family("vllm:num_requests_running", "Number of requests in model execution batches.", "gauge")
    waiting = Family("vllm:num_requests_waiting", "Number of requests waiting to be processed.", "gauge")
    cache = Family("vllm:kv_cache_usage_perc", "KV-cache usage. 1 means 100 percent usage.", "gauge")
    for labels, state in engines:
        running.add(labels, max(state.running, 0))
        waiting.add(labels, max(state.waiting, 0))
        share = cache_share(state)
        if share is not None:
            cache.add(labels, share)
    return [running, waiting, cache]


def _sleep_state(engines: Sequence[tuple[Labels, EngineState]]) -> Family:
    family = Family("vllm:engine_sleep_state", "Engine sleep state: 1 for the state that the engine is in.", "gauge")
    for labels, state in engines:
        now = _SLEEP_STATES[state.asleep]
        for name in _SLEEP_STATES:
            family.add({**labels, "sleep_state": name}, int(name == now))
    return family


def _adapters(engines: Sequence[tuple[Labels, EngineState]], unix_seconds: float) -> Family:
    """Return the family that names LoRA adapters in its labels; its value is the time."""
    family = Family("vllm:lora_requests_info", "Running stats on lora requests.", "gauge")
    for labels, state in engines:
        if state.adapters is not None:
            adapters = {
                "max_lora": str(state.adapters.at_once),
                "running_lora_adapters": ",".join(state.adapters.running),
                "waiting_lora_adapters": ",".join(state.adapters.waiting),
            }
            family.add({**labels, **adapters}, unix_seconds)
    return family


def _counters(engines: Sequence[_Engine]) -> list[Family]:
    families = []
    for name, text, of in _COUNTERS:
        family = Family(f"vllm:{name}_total", text, "counter")
        for labels, counters, _ in engines:
            family.add(labels, of(counters))
        families.append(family)
    return families


def _prefix_cache(engines: Sequence[_Engine]) -> list[Family]:
    """Return the families of engines with a prefix cache: it is asked for every token of a prompt."""
    queries = Family("vllm:prefix_cache_queries_total", "Prefix cache queries, in number of queried tokens.", "counter")
    hits = Family("vllm:prefix_cache_hits_total", "Prefix cache hits, in number of cached tokens.", "counter")
    for labels, counters, state in engines:
        if state is not None and state.cached_tokens is not None:
            queries.add(labels, counters.prompt_tokens)
            hits.add(labels, counters.cached_tokens)
    return [queries, hits]
