"""How many replicas each target asks for: one function a target, and of all the one that asks for most decides."""

from collections.abc import Callable, Iterator, Mapping
from math import ceil, inf, sqrt

from msgspec import Struct, structs

from argosy.autoscaling.decision import Allocation
from argosy.autoscaling.metrics.signals import Distribution, Signals
from argosy.autoscaling.policy import Policy

MARGIN = 1.15
"""Down only to what would hold this many times the present load: what is within it neither adds nor removes."""
_MOST_KV_CACHE = 0.9
_MOST_FACTOR = 4.0
"""A latency says that there are too few replicas, hardly how many: it adds at most this many times what there is."""
_CERTAIN = 2.0
"""Standard deviations of what comes by chance, beyond which servers fill."""
_ONE_LESS = 0.9
_FEW = 1e-9


class Need(Struct, frozen=True):
    """What a target asks for. `up`: the fewest replicas that hold it; `down`: the fewest to go down to, not rounded and
    never below what `up` is rounded from. `because`: the numbers, in words. `limited_by`: the field of a target that no
    replicas reach.
    """

    metric: str
    observed: float
    target: float
    up: int
    down: float
    because: str
    limited_by: str = ""


def per_replica(metric: str, total: float, target: float, because: str) -> Need:
    """So that each replica has at most `target` of `total`."""
    return Need(metric, total, target, whole(total / target), MARGIN * total / target, because)


def whole(replicas: float) -> int:
    """Return the fewest replicas that are as many."""
    return ceil(replicas - _FEW)


def needs(
    policy: Policy,
    allocation: Allocation,
    signals: Signals,
    queries: Mapping[str, float],
    *,
    modelled: bool,
    stood: bool,
) -> Iterator[Need]:
    """Of every target but those that the model of the queue answers. `modelled`: it has one of the engine; `stood`: the
    replicas are those of before what was measured.
    """
    for each in _MEASURED:
        if modelled and each in _OF_ENGINES:
            continue
        for need in each(policy, allocation, signals):
            early = each in _LATE and not stood
            yield structs.replace(need, up=min(need.up, allocation.replicas)) if early else need
    for query in policy.targets.queries:
        value = queries.get(query.name)
        if value is not None and 0 <= value < inf:
            total = value if query.is_average else value * allocation.replicas
            because = f"query {query.name} is {value:.4g}, target {query.target:.4g}"
            yield per_replica(f"query {query.name}", total, query.target, because)


def _concurrency(policy: Policy, allocation: Allocation, signals: Signals) -> Iterator[Need]:
    target = policy.targets.concurrency
    if target is not None and signals.pending is not None and signals.running is not None:
        total = signals.pending + signals.running
        yield per_replica(
            "concurrency", total, target, f"{total:.4g} requests wait or run, target {target:.4g} for each replica"
        )


def _tokens(policy: Policy, allocation: Allocation, signals: Signals) -> Iterator[Need]:
    target = policy.targets.tokens
    if target is not None and signals.tokens is not None:
        because = f"{signals.tokens:.4g} tokens/s, target {target:.4g} for each replica"
        yield per_replica("tokens", signals.tokens, target, because)


def _kv_cache(policy: Policy, allocation: Allocation, signals: Signals) -> Iterator[Need]:
    """A full cache alone is well used; with requests that wait for it, or will by the time that a new replica is ready,
    and need as much of it as those that run, there are too few replicas.
    """
    if signals.kv_cache is None or signals.engine_waiting is None:
        return
    replicas, more = max(1, allocation.replicas), to_come(policy, signals)
    because = (
        f"the KV cache is {100 * signals.kv_cache:.0f} % full (limit {100 * _MOST_KV_CACHE:.0f} %) and "
        f"{signals.engine_waiting:.4g} requests wait in the engine"
    )
    if more:
        because += f", {more:.3g} more before another replica is ready"
    waiting = (signals.engine_waiting + more) / signals.engine_running if signals.engine_running else 0.0
    of_servers = min(replicas, max(1, signals.servers)) * signals.kv_cache
    need = per_replica("KV cache", of_servers * min(1 + waiting, _MOST_FACTOR), _MOST_KV_CACHE, because)
    most = need.up if signals.engine_waiting + more else replicas
    yield structs.replace(need, up=min(need.up, most), down=max(min(need.down, most), min(need.up, most)))


def to_come(policy: Policy, signals: Signals) -> float:
    """Return requests by which servers fill until a replica that is asked for now is ready; 0 where that may
    be chance.
    """
    chance = sqrt((signals.arrivals or 0.0) / signals.window_s)
    growth = signals.growth or 0.0
    return growth * policy.startup_s if growth > _CERTAIN * chance else 0.0


def _first_token(policy: Policy, allocation: Allocation, signals: Signals) -> Iterator[Need]:
    yield from _over(policy.targets.first_token, signals.first_token, "first token", allocation)


def _unexplained(policy: Policy, allocation: Allocation, signals: Signals) -> Iterator[Need]:
    """Latency, where nobody measures executions that tell how it comes about."""
    if signals.arrivals and (signals.execution is None or signals.batch is None):
        yield from _over(policy.targets.latency, signals.latency, "latency", allocation)
        yield from _over(policy.targets.queue_delay, signals.queue, "queue delay", allocation)


def _over(targets: Mapping[str, float], measured: Distribution, what: str, allocation: Allocation) -> Iterator[Need]:
    """In proportion to how far it is over; down by one, or a tenth, where it is below half."""
    replicas = max(1, allocation.replicas)
    for name, target in targets.items():
        observed = measured.percentile(name)
        if observed is None:
            continue
        factor = observed / target
        up = whole(replicas * min(factor, _MOST_FACTOR)) if factor > 1 else replicas
        low = max(1.0, min(replicas - 1.0, _ONE_LESS * replicas)) if factor < 1 / 2 else float(up)
        because = f"{what} {name} is {seconds(observed)}, target {seconds(target)}"
        yield Need(f"{what} {name}", observed, target, min(up, whole(low)), low, because)


def _error_free(policy: Policy, allocation: Allocation, signals: Signals) -> Iterator[Need]:
    """Requests that were turned away are load that no other number shows."""
    turned_away = (signals.rejections or 0.0) + (signals.timeouts or 0.0)
    limit = policy.targets.error_rate
    if limit is None or not signals.arrivals or turned_away <= limit * signals.arrivals:
        return
    replicas = max(1, allocation.replicas)
    share = min(turned_away / signals.arrivals, 1 - 1 / _MOST_FACTOR)
    because = f"{100 * share:.3g} % of requests were rejected or timed out, limit {100 * limit:.3g} %"
    up = whole(replicas / (1 - share))
    yield Need("error rate", share, limit, up, up, because)


_MEASURED: tuple[Callable[[Policy, Allocation, Signals], Iterator[Need]], ...] = (
    _concurrency,
    _tokens,
    _kv_cache,
    _first_token,
    _unexplained,
    _error_free,
)
_LATE = (_first_token, _unexplained)
"""Long after replicas were added latencies are those of before: so they ask for more only once these had their time."""
_OF_ENGINES = (_kv_cache, _first_token)
"""What the model of an engine answers, where there is one (`capacity/engine.py`)."""


def seconds(value: float) -> str:
    """`85 ms`, `1.2 s`."""
    return f"{value * 1000:.3g} ms" if value < 1 else f"{value:.3g} s"
