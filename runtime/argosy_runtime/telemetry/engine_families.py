"""Argosy's metrics of engines that batch token by token (`argosy_*`), of all engines of a model version together."""

from collections.abc import Callable, Sequence
from typing import Final

from argosy_runtime.histograms import DURATION_BOUNDS, TOKEN_BOUNDS, DurationHistogram, TokenHistogram

from .engines import EngineCounters, EngineLoad
from .exposition import Family, bound_texts
from .series import ModelSeries

_NS: Final = 1e9
_SECONDS: Final = bound_texts([bound / _NS for bound in DURATION_BOUNDS])
_TOKENS: Final = bound_texts(TOKEN_BOUNDS)
_Engine = tuple[ModelSeries, EngineLoad, EngineCounters]


def engine_families(models: Sequence[ModelSeries]) -> list[Family]:
    """Return the families of those models that have engines."""
    engines = [
        (model, model.service.engine, model.statistics.engines.total())
        for model in models
        if model.service is not None and model.service.engine is not None
    ]
    return [*_gauges(engines), *_counters(engines), *_durations(engines), *_tokens(engines)]


def _gauges(engines: Sequence[_Engine]) -> list[Family]:
    waiting = Family("argosy_engine_waiting_requests", "Requests in engines that have no token yet", "gauge")
    running = Family("argosy_engine_running_requests", "Requests that engines generate for", "gauge")
    cache = Family("argosy_kv_cache_utilization", "Share (0 to 1) of engines' caches in use", "gauge")
    asleep = Family("argosy_engines_asleep", "Engines that sleep, and have to be woken to generate", "gauge")
    for model, load, _ in engines:
        waiting.add(model.labels, load.waiting)
        running.add(model.labels, load.running)
        if load.cache is not None:
            cache.add(model.labels, load.cache)
        asleep.add(model.labels, load.asleep)
    return [waiting, running, cache, asleep]


def _counters(engines: Sequence[_Engine]) -> list[Family]:
    prompts = Family("argosy_prompt_tokens_total", "Tokens of requests that engines were given", "counter")
    cached = Family("argosy_cached_tokens_total", "Tokens of prompts that prefix caches had", "counter")
    generated = Family("argosy_tokens_total", "Tokens that engines generated", "counter")
    preemptions = Family(
        "argosy_engine_preemptions_total", "Running requests that lost their cache to other requests", "counter"
    )
    for model, _, counters in engines:
        prompts.add(model.labels, counters.prompt_tokens)
        cached.add(model.labels, counters.cached_tokens)
        generated.add(model.labels, counters.generated_tokens)
        preemptions.add(model.labels, counters.preemptions)
    return [prompts, cached, generated, preemptions]


def _durations(engines: Sequence[_Engine]) -> list[Family]:
    histograms: list[tuple[str, str, Callable[[EngineCounters], DurationHistogram]]] = [
        ("engine_queue", "From a request's arrival at an engine until it first ran", lambda engine: engine.waited),
        ("first_token", "From a request's arrival at an engine to its first token", lambda engine: engine.first_token),
        ("between_tokens", "From one token of a request to its next one", lambda engine: engine.between_tokens),
    ]
    families = []
    for name, text, of in histograms:
        family = Family(f"argosy_{name}_duration_seconds", text, "histogram")
        for model, _, counters in engines:
            if counters.measured:
                histogram = of(counters)
                family.add_buckets(model.labels, _SECONDS, histogram.counts, histogram.ns / _NS)
        families.append(family)
    return families


def _tokens(engines: Sequence[_Engine]) -> list[Family]:
    histograms: list[tuple[str, str, Callable[[EngineCounters], TokenHistogram]]] = [
        ("prompt", "Requests by the tokens of their prompts", lambda engine: engine.request_prompt_tokens),
        ("generated", "Requests by the tokens of their answers", lambda engine: engine.request_generated_tokens),
        ("cached", "Requests by the tokens that prefix caches had", lambda engine: engine.request_cached_tokens),
    ]
    families = []
    for name, text, of in histograms:
        family = Family(f"argosy_request_{name}_tokens", text, "histogram")
        for model, _, counters in engines:
            if counters.measured:
                histogram = of(counters)
                family.add_buckets(model.labels, _TOKENS, histogram.counts, histogram.total)
        families.append(family)
    return families
