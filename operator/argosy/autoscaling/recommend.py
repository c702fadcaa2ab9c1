"""How many replicas the targets ask for: one function a target; the one that asks for most decides."""

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from math import ceil, inf

from msgspec import Struct, structs

from argosy.autoscaling.capacity.options import Option
from argosy.autoscaling.decision import Allocation
from argosy.autoscaling.estimate import has_stood
from argosy.autoscaling.load import Load, seconds, to_come, within
from argosy.autoscaling.memory import Memory
from argosy.autoscaling.metrics.signals import Distribution, Signals
from argosy.autoscaling.policy import Policy
from argosy.autoscaling.settings import CONFIDENCE, MARGIN, MOST_CACHE, MOST_FACTOR
from argosy.planning.amounts import quantity


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


class Recommended(Struct, frozen=True):
    """What all targets together ask for: `up` and `down` as in `Need`, and the `need` that decides."""

    up: int
    down: float
    need: Need


def ceiling(replicas: float) -> int:
    """Return the fewest whole replicas that are as many, but for rounding errors."""
    return ceil(replicas - 1e-9)


def recommended(
    policy: Policy,
    allocation: Allocation,
    signals: Signals,
    memory: Memory,
    load: Load,
    options: tuple[Option, ...],
    queries: Mapping[str, float],
    now: datetime,
) -> Recommended | None:
    """Return what the targets ask for; None where nothing that was measured says anything of replicas."""
    needs = list(_needs(policy, allocation, signals, memory, load, options, now))
    needs += _by_queries(policy, allocation, queries)
    if not needs:
        return None
    most = max(needs, key=lambda need: (need.up, need.down))
    down = max(need.down for need in needs)
    if signals.unmeasured or any(query.name not in queries for query in policy.targets.queries):
        down = max(down, allocation.replicas)
    return Recommended(most.up, down, most)


def unserved(allocation: Allocation, memory: Memory, load: Load, options: tuple[Option, ...]) -> Recommended | None:
    """Return the replicas for requests that wait where nothing serves the member; None where that is not known."""
    best = options[-1].rate if options else 0.0
    if load.rate <= 0 or best <= 0:
        return None
    because = (
        f"{quantity(memory.measured.unserved, 'request')} waited for it, {memory.forecast.level:.3g} requests/s come, "
        f"and a replica holds {best / load.rows:.3g}/s"
    )
    up = ceiling(load.rate / best)
    need = Need("waiting", memory.measured.unserved, 0.0, up, max(up, allocation.replicas), because)
    return Recommended(need.up, need.down, need)


def _needs(
    policy: Policy,
    allocation: Allocation,
    signals: Signals,
    memory: Memory,
    load: Load,
    options: tuple[Option, ...],
    now: datetime,
) -> Iterator[Need]:
    stood = has_stood(policy, memory, signals.window_s, now)
    for target in _MEASURED:
        if memory.estimates.engine is not None and options and target in _OF_ENGINES:
            continue  # the model of the engine answers these
        for need in target(policy, allocation, signals):
            # Long after replicas were added latencies are those of before.
            early = target in _OF_LATENCY and not stood
            yield structs.replace(need, up=min(need.up, allocation.replicas)) if early else need
    if options and memory.forecast.readings and signals.arrivals is not None:
        yield _by_rate(policy, allocation, signals, memory, load, options)
    elif not signals.execution and signals.tokens is None and signals.busy is not None and signals.servers:
        yield _by_busy(policy, signals.servers * signals.busy, signals.busy)


def _by_rate(
    policy: Policy,
    allocation: Allocation,
    signals: Signals,
    memory: Memory,
    load: Load,
    options: tuple[Option, ...],
) -> Need:
    """Return what comes over what one replica holds: more replicas once it is certain that these do not hold it, and
    then, as before fewer are enough, so many as certainly do.
    """
    best, replicas, target = options[-1], allocation.replicas, within(policy, signals, memory)
    least, most = (load.rate - load.error) / best.rate, (load.rate + CONFIDENCE * load.error) / best.rate
    up = ceiling(most) if least > replicas else min(replicas, ceiling(most))
    down = max(most, MARGIN * load.rate / best.rate)
    high = policy.targets.busy_high
    limit = f"within {target.name} {seconds(target.limit)}" if target.name else f"at {high:.0%}"
    because = (
        f"{memory.forecast.level:.3g} requests/s come, {load.rate / load.rows:.3g}/s are to be expected, and a replica "
        f"with {quantity(best.instances, 'instance')} holds {best.rate / load.rows:.3g}/s {limit}{target.beyond}"
    )
    if not target.name:
        return Need("busy", load.rate / best.rate * high, high, up, down, because, target.limited_by)
    return Need(target.metric, target.observed or 0.0, target.limit, up, down, because, target.limited_by)


def _by_busy(policy: Policy, total: float, busy: float) -> Need:
    """Return the need where executions are not measured: in proportion to the time that instances are busy."""
    high = policy.targets.busy_high
    because = f"instances are busy for {busy:.0%} of the time, limit {high:.0%}"
    return Need("busy", busy, high, ceiling(total / high), total * MARGIN / high, because)


def _by_queries(policy: Policy, allocation: Allocation, queries: Mapping[str, float]) -> Iterator[Need]:
    for query in policy.targets.queries:
        value = queries.get(query.name)
        if value is not None and 0 <= value < inf:
            total = value if query.is_average else value * allocation.replicas
            because = f"query {query.name} is {value:.4g}, target {query.target:.4g}"
            yield _per_replica(f"query {query.name}", total, query.target, because)


def _per_replica(metric: str, total: float, target: float, because: str) -> Need:
    """Return the need that each replica has at most `target` of `total`."""
    return Need(metric, total, target, ceiling(total / target), MARGIN * total / target, because)


def _concurrency(policy: Policy, allocation: Allocation, signals: Signals) -> Iterator[Need]:
    target = policy.targets.concurrency
    if target is not None and signals.pending is not None and signals.running is not None:
        total = signals.pending + signals.running
        because = f"{total:.4g} requests wait or run, target {target:.4g} for each replica"
        yield _per_replica("concurrency", total, target, because)


def _tokens(policy: Policy, allocation: Allocation, signals: Signals) -> Iterator[Need]:
    target = policy.targets.tokens
    if target is not None and signals.tokens is not None:
        because = f"{signals.tokens:.4g} tokens/s, target {target:.4g} for each replica"
        yield _per_replica("tokens", signals.tokens, target, because)


def _kv_cache(policy: Policy, allocation: Allocation, signals: Signals) -> Iterator[Need]:
    """Yield more for requests that wait for a cache, or will by the time that a new replica is ready: a full cache
    alone is well used.
    """
    if signals.kv_cache is None or signals.engine_waiting is None:
        return
    replicas, more = max(1, allocation.replicas), to_come(policy, signals)
    because = (
        f"the KV cache is {100 * signals.kv_cache:.0f} % full (limit {100 * MOST_CACHE:.0f} %) and "
        f"{signals.engine_waiting:.4g} requests wait in the engine"
    )
    if more:
        because += f", {more:.3g} more before another replica is ready"
    waiting = (signals.engine_waiting + more) / signals.engine_running if signals.engine_running else 0.0
    of_servers = min(replicas, max(1, signals.servers)) * signals.kv_cache
    need = _per_replica("KV cache", of_servers * min(1 + waiting, MOST_FACTOR), MOST_CACHE, because)
    most = need.up if signals.engine_waiting + more else replicas
    yield structs.replace(need, up=min(need.up, most), down=max(min(need.down, most), min(need.up, most)))


def _first_token(policy: Policy, allocation: Allocation, signals: Signals) -> Iterator[Need]:
    yield from _over(policy.targets.first_token, signals.first_token, "first token", allocation)


def _unexplained(policy: Policy, allocation: Allocation, signals: Signals) -> Iterator[Need]:
    """Yield what latencies ask for, where executions that would explain them are not measured."""
    if signals.arrivals and (signals.execution is None or signals.batch is None):
        yield from _over(policy.targets.latency, signals.latency, "latency", allocation)
        yield from _over(policy.targets.queue_delay, signals.queue, "queue delay", allocation)


def _over(targets: Mapping[str, float], measured: Distribution, what: str, allocation: Allocation) -> Iterator[Need]:
    """Yield a need in proportion to how far it is over; down by one, or a tenth, where it is below half."""
    replicas = max(1, allocation.replicas)
    for name, target in targets.items():
        observed = measured.percentile(name)
        if observed is None:
            continue
        factor = observed / target
        up = ceiling(replicas * min(factor, MOST_FACTOR)) if factor > 1 else replicas
        low = max(1.0, min(replicas - 1.0, MOST_CACHE * replicas)) if factor < 1 / 2 else float(up)
        because = f"{what} {name} is {seconds(observed)}, target {seconds(target)}"
        yield Need(f"{what} {name}", observed, target, min(up, ceiling(low)), low, because)


def _error_free(policy: Policy, allocation: Allocation, signals: Signals) -> Iterator[Need]:
    """Yield the replicas for requests that were turned away: load that no other number shows."""
    turned_away = (signals.rejections or 0.0) + (signals.timeouts or 0.0)
    limit = policy.targets.error_rate
    if limit is None or not signals.arrivals or turned_away <= limit * signals.arrivals:
        return
    share = min(turned_away / signals.arrivals, 1 - 1 / MOST_FACTOR)
    because = f"{100 * share:.3g} % of requests were rejected or timed out, limit {100 * limit:.3g} %"
    up = ceiling(max(1, allocation.replicas) / (1 - share))
    yield Need("error rate", share, limit, up, up, because)


_MEASURED: tuple[Callable[[Policy, Allocation, Signals], Iterator[Need]], ...] = (
    _concurrency,
    _tokens,
    _kv_cache,
    _first_token,
    _unexplained,
    _error_free,
)
_OF_LATENCY = (_first_token, _unexplained)
_OF_ENGINES = (_kv_cache, _first_token)
