"""Metrics of loading on demand."""

from collections.abc import Mapping

from argosy_runtime.telemetry.exposition import Family

from .loads import OnDemandLoads


def on_demand_families(loads: OnDemandLoads) -> list[Family]:
    """Return the families: loads, evictions, waits, and the memory of all models."""
    waiting = Family("argosy_on_demand_waiting_requests", "Requests that wait for their model to be loaded", "gauge")
    waiting.add({}, len(loads.waiters))
    used = Family("argosy_on_demand_memory_bytes", "Memory that the loaded models count for", "gauge")
    used.add({}, loads.used)
    limit = Family("argosy_on_demand_memory_limit_bytes", "--model-memory-limit; 0 is no limit", "gauge")
    limit.add({}, loads.limit)
    waits = Family("argosy_on_demand_wait_seconds", "How long requests waited for a model that was loaded", "histogram")
    waits.add_histogram({}, loads.waiters.waits)
    return [
        _by_model("argosy_on_demand_loads_total", "Loads that a request caused", loads.loads),
        _by_model("argosy_on_demand_load_failures_total", "Failed loads that a request caused", loads.failures),
        _by_model("argosy_on_demand_evictions_total", "Models that gave way to another one", loads.evictions),
        waiting,
        waits,
        used,
        limit,
    ]


def _by_model(name: str, text: str, counts: Mapping[str, int]) -> Family:
    family = Family(name, text, "counter")
    for model in sorted(counts):
        family.add({"model": model}, counts[model])
    return family
