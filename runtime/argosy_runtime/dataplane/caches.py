"""The load of the key-value caches of a server's engines."""

from collections.abc import Iterable

from argosy_runtime.protocol.orca import CacheLoad
from argosy_runtime.repository.records import ModelRecord
from argosy_runtime.telemetry.engines import EngineLoad


def load_of_engines(records: Iterable[ModelRecord], name: str) -> CacheLoad | None:
    """Return the load of the engines of a model, or of all models where it has none itself, as an ensemble.

    A cache is known by its size; None where there is none. Larger caches count for more.
    """
    engines = [(record.name, load) for record in records for load in _loads(record)]
    caches = [load for model, load in engines if model == name] or [load for _, load in engines]
    sized = [(load.cache or 0.0, load.cache_tokens) for load in caches if load.cache_tokens]
    total = sum(tokens for _, tokens in sized)
    return CacheLoad(sum(share * tokens for share, tokens in sized) / total, total) if total else None


def _loads(record: ModelRecord) -> list[EngineLoad]:
    serving = [served for _, served in record.serving()]
    return [
        served.statistics.engines.load(served.instance_names) for served in serving if served.statistics.engines.any
    ]
