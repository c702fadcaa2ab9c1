"""Argosy's metrics of engines that batch token by token (`argosy_*`), of all engines of a model version together."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from argosy_runtime.histograms import DurationHistogram, TokenHistogram

from .engines import EngineCounters, EngineLoad
from .exposition import Family
from .series import ModelSeries

EngineHistogram = tuple[str, str, Callable[[EngineCounters], DurationHistogram | TokenHistogram]]
"""A histogram of an engine: the name of its family, what it measures, and how to find it."""
_Engine = tuple[ModelSeries, EngineLoad, EngineCounters]
_HISTOGRAMS: Final[Sequence[EngineHistogram]] = (
    (
        "argosy_engine_queue_duration_seconds",
        "From a request's arrival at an engine until it first ran",
        lambda engine: engine.waited,
    ),
    (
        "argosy_first_token_duration_seconds",
        "From a request's arrival at an engine to its first token",
        lambda engine: engine.first_token,
    ),
    (
        "argosy_between_tokens_duration_seconds",
        "From one token of a request to its next one",
        lambda engine: engine.between_tokens,
    ),
    (
        "argosy_request_prompt_tokens",
        "Requests by the tokens of their prompts",
        lambda engine: engine.request_prompt_tokens,
    ),
    (
        "argosy_request_generated_tokens",
        "Requests by the tokens of their answers",
        lambda engine: engine.request_generated_tokens,
    ),
    (
        "argosy_request_cached_tokens",
        "Requests by the tokens that prefix caches had",
        lambda engine: engine.request_cached_tokens,
    ),
)


def engine_families(models: Sequence[ModelSeries]) -> list[Family]:
    """Return the families of those models that have engines."""
    engines = [
        (model, model.service.engine, model.statistics.engines.total())
        for model in models
        if model.service is not None and model.service.engine is not None
    ]
    measured = [(model.labels, counters) for model, _, counters in engines]
    return [*_gauges(engines), *_counters(engines), *histogram_families(_HISTOGRAMS, measured)]


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


def histogram_families(
    histograms: Iterable[EngineHistogram], engines: Sequence[tuple[Mapping[str, str], EngineCounters]]
) -> list[Family]:
    """Return a family for each histogram, with the values of those engines that measure their requests."""
    families = []
    for name, text, of in histograms:
        family = Family(name, text, "histogram")
        for labels, counters in engines:
            if counters.measured:
                family.add_histogram(labels, of(counters))
        families.append(family)
    return families
