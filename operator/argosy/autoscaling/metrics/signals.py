"""The signals of models and ensembles, of GPUs, and of a pool. Durations are in seconds.

A value is None where it was not measured, or where the measured one is impossible (NaN, negative, out of its range).
Unknown is not zero: no decision takes anything away on what is not known.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from .histograms import UNMEASURED, Distribution
from .version_counts import VersionSignals


@dataclass(frozen=True, slots=True)
class ServerQueue:
    """The requests that wait on one server, for an instance or inside an engine."""

    server: str
    waiting: float


@dataclass(frozen=True, slots=True)
class MemorySignals:
    """Bytes of the processes of one version on the server where they are the most: on the `host`, and on that `gpu` of
    the server where they are the most. `instances` are loaded there, as many as when it was measured.
    """

    version: int
    server: str
    instances: int
    host: float | None = None
    gpu: float | None = None


@dataclass(frozen=True, slots=True)
class CrossoverSignals:
    """The crossover of a variant and the next one that the traffic of servers shows, each by its requests.

    It is at least `low` and at most `high`, None without a bound. `requests`: those compared. `fits`: whether the
    declared one fits, by the servers with most of the requests; None without a declared one.
    """

    low: float | None
    high: float | None
    requests: float
    fits: bool | None


@dataclass(frozen=True, slots=True)
class VariantSignals:
    """One variant of a routed model, over all servers. `variant`: the name of its model there.

    `requests` that it was sent in the window, and `in_flight` now. Servers where it is the `regime`'s variant, where it
    is `ready`, and where it is `asleep`. `regime_s`: how long it has been the regime's, where that changed last; None
    where it is none's. `crossover`: the one with the next variant that traffic shows; None if too few requests can be
    compared.
    """

    variant: str
    requests: float = 0.0
    in_flight: float = 0.0
    regime: int = 0
    ready: int = 0
    asleep: int = 0
    regime_s: float | None = None
    crossover: CrossoverSignals | None = None


@dataclass(frozen=True, slots=True)
class Signals:
    """One model or ensemble, all its servers and versions together. `at`: when the newest of it was measured.

    It is the sum of `servers`; `unmeasured` others serve it too, of which nothing is known. Rates are per second, over
    `window_s`: `arrivals` of all requests (`recent`: over the last `recent_s` alone; None where only the window is
    known), `completions` of those answered, `rejections` (by a full queue), `timeouts` (in the queue) and
    `out_of_memory` of those that failed (in the versions `failing`), `growth` of those that wait or are executed.
    `pending` requests wait now, by server in `queues`, and `running` ones are executed.

    `latency`: from request to last response; of that, `queue` is spent waiting, and `compute` (the mean) executing, for
    the full time of the batch. `execution`: the mean time of one, of `batch` rows on average and `max_batch` at most
    (0: no batching). `busy`: the share (0 to 1) of the time of all `instances` that was spent executing; `cache_hits`:
    the share of requests that the response cache answered.

    Of language models: `first_token` from request to first token (of that, `engine_queue` passes before the engine
    runs it), `between_tokens`; per second, `tokens` generated, `prompt_tokens` received, `cached_tokens` of these that
    prefix caches had, and `preemptions`, running requests that lost their cache to others; requests in the engines,
    `engine_waiting` and `engine_running`, and `kv_cache`, the share in use where it is highest. Of routed models:
    their `variants`. Of models in processes of their own: the `memory` of each version that was measured in the window,
    and the servers where some `crashed` in it.
    """

    at: datetime
    window_s: float
    servers: int = 0
    unmeasured: int = 0
    arrivals: float | None = None
    recent: float | None = None
    recent_s: float = 0.0
    completions: float | None = None
    rejections: float | None = None
    timeouts: float | None = None
    out_of_memory: float | None = None
    failing: tuple[int, ...] = ()
    growth: float | None = None
    pending: float | None = None
    running: float | None = None
    queues: tuple[ServerQueue, ...] = ()
    latency: Distribution = UNMEASURED
    queue: Distribution = UNMEASURED
    compute: float | None = None
    execution: float | None = None
    batch: float | None = None
    max_batch: int | None = None
    instances: float | None = None
    busy: float | None = None
    cache_hits: float | None = None
    first_token: Distribution = UNMEASURED
    between_tokens: Distribution = UNMEASURED
    engine_queue: Distribution = UNMEASURED
    tokens: float | None = None
    prompt_tokens: float | None = None
    cached_tokens: float | None = None
    preemptions: float | None = None
    engine_waiting: float | None = None
    engine_running: float | None = None
    kv_cache: float | None = None
    variants: tuple[VariantSignals, ...] = ()
    memory: tuple[MemorySignals, ...] = ()
    crashed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class GpuSignals:
    """One GPU: `utilization` from 0 to 1, memory in bytes."""

    utilization: float | None = None
    memory_used: float | None = None
    memory_total: float | None = None


@dataclass(frozen=True, slots=True)
class PoolSignals:
    """One pool now. `members`, and `queued` requests for models that no server has, by resource name. `gpus` by server
    and by their index there, in order of UUIDs.

    `queries`: values of the PromQL of resources, by resource name and the query's own; the reasons why others have none
    are in `query_errors`. `error`: why nothing new was read; the signals are as old as they say.

    `versions`: of members whose rollouts are under way, what servers counted since the reading before, by version.
    """

    members: Mapping[str, Signals] = field(default_factory=dict)
    gpus: Mapping[tuple[str, int], GpuSignals] = field(default_factory=dict)
    queued: Mapping[str, int] = field(default_factory=dict)
    queries: Mapping[tuple[str, str], float] = field(default_factory=dict)
    query_errors: Mapping[tuple[str, str], str] = field(default_factory=dict)
    versions: Mapping[str, Mapping[int, VersionSignals]] = field(default_factory=dict)
    error: str = ""
