"""The load on a member, and the capacity of one of its replicas within the targets."""

from math import sqrt

from msgspec import Struct

from argosy.autoscaling.capacity.engine import Engine
from argosy.autoscaling.capacity.options import Limit, Option, limited, limits_of, options
from argosy.autoscaling.capacity.queueing import highest
from argosy.autoscaling.estimate import overdue
from argosy.autoscaling.metrics.histograms import SHARES
from argosy.autoscaling.metrics.signals import Signals
from argosy.autoscaling.settings import CONFIDENCE, DRAIN_S, SAME
from argosy.autoscaling.stage import Stage


class Load(Struct, frozen=True):
    """Load in rows per second: `expected` at the time when a new replica would be ready, with its standard `error`, and
    `waiting`, the rate that drains the overdue queue. `rows`: mean rows of a request.
    """

    expected: float = 0.0
    error: float = 0.0
    waiting: float = 0.0
    rows: float = 1.0

    @property
    def rate(self) -> float:
        """The sum of both."""
        return self.expected + self.waiting


def load_of(stage: Stage) -> Load:
    """Return the load. The queue adds at most the arrival rate: new replicas serve new requests, not the queue."""
    rows, forecast, signals = stage.memory.estimates.rows, stage.memory.forecast, stage.signals
    if not forecast.readings or (signals is None and not stage.queued):
        return Load(waiting=stage.queued / DRAIN_S * rows, rows=rows)
    expected, waiting = forecast.expected(stage.policy.startup_s), float(stage.queued)
    if signals is not None:
        more = _without_slot(stage, signals) - _ejected(stage, signals)
        waiting += overdue(stage.policy, signals, forecast.level, more)
    error = forecast.error if expected > 0 else 0.0
    return Load(expected * rows, error * rows, min(waiting / DRAIN_S, forecast.level) * rows, rows)


def to_come(stage: Stage, signals: Signals) -> float:
    """Return the growth of unfinished requests until a new replica is ready; 0 where it is not significant."""
    chance = sqrt((signals.arrivals or 0.0) / signals.window_s)
    growth = signals.growth or 0.0
    return growth * stage.policy.startup_s if growth > CONFIDENCE * chance else 0.0


def _without_slot(stage: Stage, signals: Signals) -> float:
    """Return the requests for which engines will have no slot when a new replica is ready."""
    use = stage.memory.estimates.engine
    if use is None:
        return 0.0
    free = use.slots * signals.servers - (signals.engine_running or 0.0)
    return max(0.0, to_come(stage, signals) - max(0.0, free))


def _ejected(stage: Stage, signals: Signals) -> float:
    """Return the requests on ejected servers, which work these off by themselves."""
    ejected = stage.memory.ejection.among([queue.server for queue in signals.queues])
    return sum(queue.waiting for queue in signals.queues if queue.server in ejected)


def options_of(stage: Stage) -> tuple[Option, ...]:
    """Return the settings with their capacity in rows/s, the cheapest first; empty before service times are known."""
    estimates, bounds, targets, engine = stage.memory.estimates, stage.policy.bounds, stage.policy.targets, stage.engine
    if estimates.service is None:
        return ()
    if engine is not None:
        rate, limit = _engine_rate(stage, engine)
        before = stage.memory.holds or 0.0
        rate = before if abs(rate - before) <= SAME * before else rate
        return (Option(stage.allocation.instances, stage.allocation.window_s, rate, limit),)
    measured = min(stage.most_instances, max(bounds.min_instances, estimates.experience.busiest))
    for reachable in (limits_of(targets, estimates.service), ()):
        settings = options(estimates.service, reachable, targets.busy_high, bounds, measured, stage.largest_batch)
        if settings[-1].rate > 0:
            break
    return settings


def _engine_rate(stage: Stage, engine: Engine) -> tuple[float, Limit | None]:
    """Return the most requests per second of an engine within all targets that can be met, and the one that limits."""
    targets = stage.policy.targets
    first_token = sorted(targets.first_token.items())
    limits = [Limit(f"first token {name}", SHARES[name], s) for name, s in first_token if s > engine.prompt_s]
    rate, limit = limited(targets.busy_high * engine.most, limits, engine.within)

    def within(limit: Limit, most: float) -> float:
        unevenness = between_unevenness(stage.signals, limit.metric.rpartition(" ")[2])
        return highest(most, lambda rate: engine.between_tokens(rate) * unevenness <= limit.seconds)

    between = [
        Limit(f"between tokens {name}", SHARES[name], s)
        for name, s in sorted(targets.between_tokens.items())
        if s > engine.between_tokens(0.0) * between_unevenness(stage.signals, name)
    ]
    rate, stricter = limited(rate, between, within)
    return rate, stricter or limit


def between_unevenness(signals: Signals | None, percentile: str) -> float:
    """Return how many times the mean time between tokens a percentile of it is, as measured; 1 if that is unknown.

    The model of an engine has means alone: how unevenly tokens come depends on prompts that are worked on in between.
    """
    mean = signals.between_tokens.mean if signals is not None else None
    measured = signals.between_tokens.percentile(percentile) if signals is not None else None
    return max(1.0, measured / mean) if measured and mean else 1.0
