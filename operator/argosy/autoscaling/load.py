"""The load that replicas are to hold, and what one replica holds of it within its targets."""

from math import sqrt

from msgspec import Struct

from argosy.autoscaling.capacity.engine import Engine
from argosy.autoscaling.capacity.options import Limits, Option, options, strictest
from argosy.autoscaling.decision import Allocation, SpareCapacity
from argosy.autoscaling.estimate import overdue
from argosy.autoscaling.memory import Memory
from argosy.autoscaling.metrics.histograms import SHARES
from argosy.autoscaling.metrics.signals import Signals
from argosy.autoscaling.policy import Policy
from argosy.autoscaling.settings import CONFIDENCE, DRAIN_S, SAME


class Load(Struct, frozen=True):
    """Rows a second: `expected` when a new replica would be ready, with its standard `error`; `waiting`: what has
    waited for too long, to be worked off. `rows`: of a request.
    """

    expected: float = 0.0
    error: float = 0.0
    waiting: float = 0.0
    rows: float = 1.0

    @property
    def rate(self) -> float:
        """What is expected and what waits."""
        return self.expected + self.waiting


def load_of(policy: Policy, signals: Signals | None, memory: Memory, queued: int) -> Load:
    """Return the load. `queued`: requests that wait where nothing serves the member. What waits in servers that are
    there asks for no more than is expected: new replicas take what comes, and not the queue.
    """
    rows, forecast = memory.estimates.rows, memory.forecast
    if not forecast.readings or (signals is None and not queued):
        return Load(waiting=queued / DRAIN_S * rows, rows=rows)
    expected = forecast.expected(policy.startup_s)
    overdue_requests = 0.0
    if signals is not None:
        overdue_requests = overdue(
            policy, signals, forecast.level, _without_slot(policy, signals, memory) - _ejected(signals, memory)
        )
    waiting = min((overdue_requests + queued) / DRAIN_S, forecast.level)
    return Load(expected * rows, forecast.error * rows if expected > 0 else 0.0, waiting * rows, rows)


def to_come(policy: Policy, signals: Signals) -> float:
    """Return the requests by which servers fill until a new replica is ready; 0 where that may be chance."""
    chance = sqrt((signals.arrivals or 0.0) / signals.window_s)
    growth = signals.growth or 0.0
    return growth * policy.startup_s if growth > CONFIDENCE * chance else 0.0


def _without_slot(policy: Policy, signals: Signals, memory: Memory) -> float:
    """Return the requests that engines will have no slot for by the time that a new replica is ready."""
    engine = memory.estimates.engine
    if engine is None:
        return 0.0
    free = engine.slots * signals.servers - (signals.engine_running or 0.0)
    return max(0.0, to_come(policy, signals) - max(0.0, free))


def _ejected(signals: Signals, memory: Memory) -> float:
    """Return the requests on ejected servers, which work these off by themselves."""
    ejected = memory.ejection.among([queue.server for queue in signals.queues])
    return sum(queue.waiting for queue in signals.queues if queue.server in ejected)


def engine_of(memory: Memory) -> Engine | None:
    """Return the engine that batches by itself, once enough is known of it."""
    engine = memory.estimates.engine
    return engine.engine(memory.estimates.service) if engine is not None else None


def options_of(policy: Policy, allocation: Allocation, spare: SpareCapacity, memory: Memory) -> tuple[Option, ...]:
    """Return settings with the rows a second that each holds, the cheapest first; none before service is known."""
    service, engine = memory.estimates.service, engine_of(memory)
    if service is None:
        return ()
    if engine is not None:
        first_token = sorted(policy.targets.first_token.items())
        limits = tuple((SHARES[name], limit) for name, limit in first_token if limit > engine.prompt_s)
        rate = engine.within(policy.targets.busy_high, limits)
        if memory.holds is not None and abs(rate - memory.holds) <= SAME * memory.holds:
            rate = memory.holds
        return (Option(allocation.instances, allocation.window_s, rate),)
    most, batch = most_instances(policy, allocation, spare, memory), largest_batch(policy, allocation)
    measured = min(most, max(policy.bounds.min_instances, memory.estimates.experience.busiest))
    limits_of = Limits.of(policy.targets, service)
    within_limits = options(service, limits_of, policy.bounds, measured, batch)
    if within_limits[-1].rate > 0:
        return within_limits
    return options(service, Limits((), (), None, limits_of.busy), policy.bounds, measured, batch)


def largest_batch(policy: Policy, allocation: Allocation) -> int:
    """Return the most rows of a batch; 1 without batching."""
    most = policy.bounds.max_batch
    return max(1, min(allocation.max_batch or most, most))


def most_instances(policy: Policy, allocation: Allocation, spare: SpareCapacity, memory: Memory) -> int:
    """Return the most instances of one device that the spec, the memory and the room leave."""
    most = policy.bounds.max_instances
    if memory.most_instances is not None:
        most = min(most, memory.most_instances)
    if spare.instances is not None:
        most = min(most, allocation.instances + spare.instances)
    return max(policy.bounds.min_instances, most)


class Within(Struct, frozen=True):
    """The target that an option's rate is within: its `metric`, the `name` and `limit` (seconds) of its percentile, and
    what was `observed`. Without a name it is the time in use. Where a target is out of reach of any number of replicas,
    `beyond` says so and `limited_by` names its field.
    """

    metric: str
    name: str
    limit: float
    observed: float | None
    beyond: str = ""
    limited_by: str = ""


def within(policy: Policy, signals: Signals, memory: Memory) -> Within:
    """Return the strictest target: of an engine's first token, else of the latency of whole requests."""
    engine, service, targets = engine_of(memory), memory.estimates.service, policy.targets
    if engine is not None:
        what, limits, measured, alone = "first token", targets.first_token, signals.first_token, engine.prompt_s
        takes, field = "a prompt alone takes", "spec.slo.timeToFirstToken"
    else:
        what, limits, measured = "latency", targets.latency, signals.latency
        alone = service.seconds(1.0) if service is not None else 0.0
        takes, field = "one request alone is executed for", "spec.slo.latency"
    beyond = limited_by = ""
    unreachable = sorted((name, limit) for name, limit in limits.items() if limit <= alone)
    if unreachable:
        name, limit = unreachable[0]
        beyond, limited_by = f"; {name} {seconds(limit)} is out of reach, {takes} {seconds(alone)}", f"{field}.{name}"
    name = strictest(percentile for percentile, limit in limits.items() if limit > alone)
    if not name:
        return Within("busy", "", 0.0, None, beyond, limited_by)
    metric = f"{what} {name}"
    words = name if what == "latency" else metric
    return Within(metric, words, limits[name], measured.percentile(name), beyond, limited_by)


def seconds(value: float) -> str:
    """Return a duration in words: `85 ms`, `1.2 s`."""
    return f"{value * 1000:.3g} ms" if value < 1 else f"{value:.3g} s"
