"""What is measured of a model or an ensemble, of the GPUs, and of a whole pool. Durations are in seconds.

A value is None where it was not measured, or where what was measured cannot be so (NaN, negative, out of its range):
what is not known is told apart from zero, since nothing is taken away on what is not known.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Distribution:
    """A duration's mean and percentiles, over all servers."""

    mean: float | None = None
    p50: float | None = None
    p90: float | None = None
    p95: float | None = None
    p99: float | None = None
    p999: float | None = None

    def percentile(self, name: str) -> float | None:
        """By its name in an SLO, such as `p99`."""
        percentile: float | None = getattr(self, name)
        return percentile


UNMEASURED = Distribution()


@dataclass(frozen=True, slots=True)
class ServerQueue:
    """The requests that wait on one server, be it for an instance or inside of an engine."""

    server: str
    waiting: float


@dataclass(frozen=True, slots=True)
class Signals:
    """One model or ensemble, its servers and versions together (or one version of it).

    `at`: when the newest of it was measured; `window_s`: the time that rates are over. It is of so many `servers`;
    `unmeasured` are further ones that serve it, of which nothing is known now, so that there is more of everything
    than is told here. Rates are per second: `arrivals` of requests, whatever became of them (`recent`: over the newest
    `recent_s` alone, None where only the window is known), `completions` of those answered, `failures` of all that
    failed (not of what its client took back), among them `rejections` (a full queue), `timeouts` (in the queue) and
    `out_of_memory`. `growth`: how many a second more there are, waiting or executed, than when the window began.
    `pending` requests wait now, `running` are executed now; `queues`: those that wait, of each server that tells it.
    `latency`: from request to last response; `queue`: of that, waiting; `compute`: the mean of its execution as a
    request sees it, which is the whole of its batch's. `execution`: the mean time of one execution, `batch` its mean
    rows, `max_batch` the most it may have (0: no batching).
    `instances` there are on all servers, of whose time `busy` (0 to 1) was spent executing. `cache_hits`: share of
    requests (0 to 1) that the response cache answered.

    Of language models: `first_token` from request to first response, `between_tokens`, `tokens` per second,
    `engine_waiting` and `engine_running` requests inside the engine, `kv_cache` the share (0 to 1) in use on the server
    where that is highest.
    """

    at: datetime
    window_s: float
    servers: int = 0
    unmeasured: int = 0
    arrivals: float | None = None
    recent: float | None = None
    recent_s: float = 0.0
    completions: float | None = None
    failures: float | None = None
    rejections: float | None = None
    timeouts: float | None = None
    out_of_memory: float | None = None
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
    tokens: float | None = None
    engine_waiting: float | None = None
    engine_running: float | None = None
    kv_cache: float | None = None


@dataclass(frozen=True, slots=True)
class GpuSignals:
    """One GPU of a server: `index` among its own, ordered by UUID, `utilization` from 0 to 1, memory in bytes."""

    server: str
    index: int
    uuid: str = ""
    utilization: float | None = None
    memory_used: int | None = None
    memory_total: int | None = None


@dataclass(frozen=True, slots=True)
class PoolSignals:
    """What is known of one pool now.

    `members` by resource name, `versions` by resource name and version. `queued`: requests that wait for a model of
    which no server has anything, by resource name. `queries`: values of the PromQL that a resource names, by resource
    name and the query's own; one that cannot be had is missing here and has its reason in `query_errors`. `source`:
    who was asked. `error`: why nothing, or nothing new, could be had; what is known is then as old as it says.
    """

    members: Mapping[str, Signals] = field(default_factory=dict)
    versions: Mapping[tuple[str, int], Signals] = field(default_factory=dict)
    gpus: tuple[GpuSignals, ...] = ()
    queued: Mapping[str, int] = field(default_factory=dict)
    queries: Mapping[tuple[str, str], float] = field(default_factory=dict)
    query_errors: Mapping[tuple[str, str], str] = field(default_factory=dict)
    source: str = ""
    error: str = ""
