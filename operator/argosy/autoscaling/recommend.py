"""The replicas that the targets need. Each target yields one or more needs, and the largest need decides."""

from collections.abc import Callable, Iterator, Mapping
from math import ceil, inf

from msgspec import Struct, structs

from argosy.autoscaling.capacity.options import QUEUE_SHARE, Limit, Option
from argosy.autoscaling.estimate import has_stood
from argosy.autoscaling.explain import seconds
from argosy.autoscaling.load import Load, between_unevenness, to_come
from argosy.autoscaling.metrics.histograms import Distribution
from argosy.autoscaling.metrics.signals import Signals
from argosy.autoscaling.settings import CONFIDENCE, LEAST_REMAINING, MOST_CACHE, MOST_FACTOR, MOST_REPLICAS
from argosy.autoscaling.stage import Stage
from argosy.planning.amounts import quantity


class Need(Struct, frozen=True):
    """The replicas that one target needs. `up`: the fewest that meet it. `down`: the fewest that scaling down may
    leave, not rounded, and never less than the value that `up` is rounded from. `because`: the numbers, in words.
    `limited_by`: the field of a target that no number of replicas meets.
    """

    metric: str
    observed: float
    target: float
    up: int
    down: float
    because: str
    limited_by: str = ""


def ceiling(replicas: float) -> int:
    """Return the number rounded up, ignoring floating-point errors, and at most `MOST_REPLICAS`."""
    return ceil(min(replicas, MOST_REPLICAS) - 1e-9)


def recommended(stage: Stage, load: Load, options: tuple[Option, ...]) -> Need | None:
    """Return the largest need of all targets, with the largest `down` of any. Return None where no measurement
    determines a number of replicas.
    """
    signals = stage.signals
    if signals is None:
        return _unserved(stage, load, options)
    needs = list(_needs(stage, signals, load, options))
    if not needs:
        return None
    down = max(need.down for need in needs)
    if is_partial(stage):
        down = max(down, stage.allocation.replicas)
    return structs.replace(max(needs, key=lambda need: (need.up, need.down)), down=down)


def is_partial(stage: Stage) -> bool:
    """Return whether something is unknown that might ask for more: a server's measurements, or a query's value."""
    queries = stage.policy.targets.queries
    unmeasured = stage.signals is None or stage.signals.unmeasured > 0
    return unmeasured or any(query.name not in stage.queries for query in queries)


def _unserved(stage: Stage, load: Load, options: tuple[Option, ...]) -> Need | None:
    """Return the need of requests that wait while no server has the member; None before its capacity is known."""
    best, waited = options[-1].rate if options else 0.0, stage.memory.measured.unserved
    if load.rate <= 0 or best <= 0:
        return None
    because = (
        f"{quantity(waited, 'request')} waited for it, {stage.memory.forecast.level:.3g} requests/s come, "
        f"and a replica holds {best / load.rows:.3g}/s"
    )
    up = ceiling(load.rate / best)
    return Need("waiting", waited, 0.0, up, max(up, stage.allocation.replicas), because)


def _needs(stage: Stage, signals: Signals, load: Load, options: tuple[Option, ...]) -> Iterator[Need]:
    yield from _totals(stage, signals)
    yield from _errors(stage, signals)
    if stage.engine is None or not options:  # the model of the engine answers these
        yield from _kv_cache(stage, signals)
        yield from _durations(stage, signals, "first token", stage.policy.targets.first_token, signals.first_token)
        between = stage.policy.targets.between_tokens
        yield from _durations(stage, signals, "between tokens", between, signals.between_tokens)
    if signals.arrivals and (signals.execution is None or signals.batch is None):  # nothing else explains latencies
        yield from _durations(stage, signals, "latency", stage.policy.targets.latency, signals.latency)
        yield from _durations(stage, signals, "queue delay", stage.policy.targets.queue_delay, signals.queue)
    if options and stage.memory.forecast.readings and signals.arrivals is not None:
        yield _rate(stage, signals, load, options[-1])
    elif not signals.execution and signals.tokens is None and signals.busy is not None and signals.servers:
        high = stage.policy.targets.busy_high
        because = f"instances are busy for {signals.busy:.0%} of the time, limit {high:.0%}"
        need = _per_replica(stage, "busy", signals.servers * signals.busy, high, because)
        yield structs.replace(need, observed=signals.busy)


def _per_replica(stage: Stage, metric: str, total: float, target: float, because: str) -> Need:
    """Return the need that each replica has at most `target` of `total`, which counts as finite."""
    total = min(total, MOST_REPLICAS * target)
    down = stage.policy.targets.margin * total / target
    return Need(metric, total, target, ceiling(total / target), down, because)


def _totals(stage: Stage, signals: Signals) -> Iterator[Need]:
    """Yield the needs of targets per replica: concurrency, tokens and queries."""
    targets, per_replica = stage.policy.targets, "for each replica"
    if targets.concurrency is not None and signals.pending is not None and signals.running is not None:
        total = signals.pending + signals.running
        because = f"{total:.4g} requests wait or run, target {targets.concurrency:.4g} {per_replica}"
        yield _per_replica(stage, "concurrency", total, targets.concurrency, because)
    if targets.tokens is not None and signals.tokens is not None:
        because = f"{signals.tokens:.4g} tokens/s, target {targets.tokens:.4g} {per_replica}"
        yield _per_replica(stage, "tokens", signals.tokens, targets.tokens, because)
    for query in targets.queries:
        value = stage.queries.get(query.name)
        if value is not None and 0 <= value < inf:
            total = value if query.is_average else value * stage.allocation.replicas
            because = f"query {query.name} is {value:.4g}, target {query.target:.4g}"
            yield _per_replica(stage, f"query {query.name}", total, query.target, because)


def _errors(stage: Stage, signals: Signals) -> Iterator[Need]:
    """Yield the need of rejected and timed-out requests, which no other metric counts as load."""
    turned_away = (signals.rejections or 0.0) + (signals.timeouts or 0.0)
    limit = stage.policy.targets.error_rate
    if limit is None or not signals.arrivals or turned_away <= limit * signals.arrivals:
        return
    share = min(turned_away / signals.arrivals, 1 - 1 / MOST_FACTOR)
    because = f"{100 * share:.3g} % of requests were rejected or timed out, limit {100 * limit:.3g} %"
    up = ceiling(max(1, stage.allocation.replicas) / (1 - share))
    yield Need("error rate", share, limit, up, up, because)


def _kv_cache(stage: Stage, signals: Signals) -> Iterator[Need]:
    """Yield the need of requests that wait for the KV cache now, or will when a new replica is ready. A full cache
    without waiting requests needs no more replicas.
    """
    if signals.kv_cache is None or signals.engine_waiting is None:
        return
    replicas, more = max(1, stage.allocation.replicas), to_come(stage, signals)
    because = (
        f"the KV cache is {100 * signals.kv_cache:.0f} % full (limit {100 * MOST_CACHE:.0f} %) and "
        f"{signals.engine_waiting:.4g} requests wait in the engine"
    )
    because += f", {more:.3g} more before another replica is ready" if more else ""
    waiting = (signals.engine_waiting + more) / signals.engine_running if signals.engine_running else 0.0
    in_use = min(replicas, max(1, signals.servers)) * signals.kv_cache * min(1 + waiting, MOST_FACTOR)
    need = _per_replica(stage, "KV cache", in_use, MOST_CACHE, because)
    up = need.up if signals.engine_waiting + more else min(need.up, replicas)
    yield structs.replace(need, up=up, down=max(up, min(need.down, replicas)))


def _durations(
    stage: Stage, signals: Signals, what: str, targets: Mapping[str, float], measured: Distribution
) -> Iterator[Need]:
    """Yield a need for each percentile, in proportion to observed over target. Below half of the target, one replica or
    a tenth of them may be removed. While the window still has measurements from before a change, nothing is added.
    """
    replicas = max(1, stage.allocation.replicas)
    for name, target in targets.items():
        observed = measured.percentile(name)
        if observed is None:
            continue
        factor = observed / target
        up = ceiling(replicas * min(factor, MOST_FACTOR)) if factor > 1 else replicas
        up = up if has_stood(stage, signals) else min(up, stage.allocation.replicas)
        low = max(1.0, min(replicas - 1.0, LEAST_REMAINING * replicas)) if factor < 1 / 2 else float(up)
        because = f"{what} {name} is {seconds(observed)}, target {seconds(target)}"
        yield Need(f"{what} {name}", observed, target, min(up, ceiling(low)), low, because)


def _rate(stage: Stage, signals: Signals, load: Load, best: Option) -> Need:
    """Return the need of the load, by the capacity of one replica. Replicas are added once the load less one standard
    error exceeds their capacity. The number is enough for the load plus `CONFIDENCE` standard errors.
    """
    replicas, high, margin = stage.allocation.replicas, stage.policy.targets.busy_high, stage.policy.targets.margin
    least, most = (load.rate - load.error) / best.rate, (load.rate + CONFIDENCE * load.error) / best.rate
    up = ceiling(most) if least > replicas else min(replicas, ceiling(most))
    need = Need("busy", load.rate / best.rate * high, high, up, max(most, margin * load.rate / best.rate), "")
    need, limit = _limited_by(stage, signals, need, best.limit)
    because = (
        f"{stage.memory.forecast.level:.3g} requests/s come, {load.rate / load.rows:.3g}/s are to be expected, and a "
        f"replica with {quantity(best.instances, 'instance')} holds {best.rate / load.rows:.3g}/s {limit}"
    )
    return structs.replace(need, because=because)


def _limited_by(stage: Stage, signals: Signals, need: Need, limit: Limit | None) -> tuple[Need, str]:
    """Return the need with the numbers of the target that limits a replica, and that target in words. A target below
    the service time cannot be met.
    """
    need, beyond = _beyond(stage, need)
    if limit is None:
        return need, f"at {need.target:.0%}{beyond}"
    target, observed = limit.seconds, _percentile(signals, limit.metric)
    words = f"within {limit.metric.removeprefix('latency ')} {seconds(target)}"
    if limit.metric == QUEUE_SHARE:
        target, observed = stage.policy.targets.queue_share or 0.0, _queue_share(signals)
        words = f"within a {limit.metric} of {target:.0%}"
    return structs.replace(need, metric=limit.metric, observed=observed, target=target), f"{words}{beyond}"


def _queue_share(signals: Signals) -> float:
    """Return the measured share of their time that requests wait, 0 if unknown."""
    return signals.queue.mean / signals.latency.mean if signals.queue.mean and signals.latency.mean else 0.0


def _percentile(signals: Signals, metric: str) -> float:
    """Return the measured percentile that a metric names, 0 if unknown."""
    what, _, name = metric.rpartition(" ")
    measured = {
        "latency": signals.latency,
        "queue delay": signals.queue,
        "first token": signals.first_token,
        "between tokens": signals.between_tokens,
    }
    return (measured[what].percentile(name) or 0.0) if what in measured else 0.0


def _beyond(stage: Stage, need: Need) -> tuple[Need, str]:
    """Return the need with the field of a target that cannot be met, and a clause that reports it, if there is one."""
    for field, limits, takes, alone in _unloaded(stage):
        for name, limit in sorted(limits.items()):
            least = alone(name)
            if limit <= least:
                beyond = f"; {name} {seconds(limit)} is out of reach, {takes} {seconds(least)}"
                return structs.replace(need, limited_by=f"{field}.{name}"), beyond
    return need, ""


def _unloaded(stage: Stage) -> Iterator[tuple[str, Mapping[str, float], str, Callable[[str], float]]]:
    """Yield fields of targets with their limits, and what a percentile takes without any other request: words, and a
    function of the percentile's name.
    """
    targets, engine, service = stage.policy.targets, stage.engine, stage.memory.estimates.service
    if engine is None:
        alone = service.seconds(1.0) if service is not None else 0.0
        yield "spec.slo.latency", targets.latency, "one request alone is executed for", lambda _: alone
        return
    prompt_s, step_s, signals = engine.prompt_s, engine.between_tokens(0.0), stage.signals
    yield "spec.slo.timeToFirstToken", targets.first_token, "a prompt alone takes", lambda _: prompt_s
    yield (
        "spec.slo.interTokenLatency",
        targets.between_tokens,
        "the tokens of one request alone take",
        lambda name: step_s * between_unevenness(signals, name),
    )
