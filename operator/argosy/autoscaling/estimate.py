"""Estimates of load and service from signals, before any decision.

Service times are used only where the mean over servers represents each of them: with one server, with all of them busy,
or without a queue since the last change (queues may differ between servers). Times measured partly with another
number of instances are not used.
"""

from datetime import datetime

from msgspec import structs

from argosy.autoscaling.capacity.engine import engine_use
from argosy.autoscaling.capacity.service import Batches
from argosy.autoscaling.forecast import Forecast
from argosy.autoscaling.memory import Estimates, Measured, Memory
from argosy.autoscaling.metrics.signals import Signals
from argosy.autoscaling.policy import Policy
from argosy.autoscaling.settings import EVIDENCE, SATURATED, STALE_S, WEIGHT
from argosy.autoscaling.stage import Stage

_NEWER_S = 0.1
"""Readings closer together than this, in seconds, are one reading, timed by two clocks."""


def unusable(signals: Signals | None, now: datetime) -> str:
    """Return the reason why these signals cannot be used; empty if they can."""
    if signals is None:
        return "nothing is measured"
    age = (now - signals.at).total_seconds()
    stale_s = max(STALE_S, 3 * signals.recent_s)
    if age > stale_s:
        return f"what was measured is {age:.0f} s old, of more than {stale_s:g} s it says nothing"
    if age < -STALE_S:
        return f"what was measured is dated {-age:.0f} s ahead of the clock here"
    return ""


def observed(stage: Stage) -> Stage:
    """Return the stage with its memory updated from its signals. Missing or stale signals are removed."""
    error = unusable(stage.signals, stage.now)
    if stage.signals is None or error:
        return structs.replace(stage, memory=_unobserved(stage), signals=None, error=error)
    signals, memory, now = stage.signals, stage.memory, stage.now
    before, elapsed_s = memory.measured, (signals.at - memory.measured.at).total_seconds()
    since = now if before.since is None or elapsed_s > STALE_S else before.since
    if elapsed_s < _NEWER_S:
        memory = structs.replace(memory, measured=structs.replace(before, is_new=False, since=since))
        return structs.replace(stage, memory=memory)
    forecast = _forecast(memory.forecast, signals, elapsed_s)
    measured = Measured(
        signals.at,
        since,
        is_new=True,
        active_at=now if _active(signals) else before.active_at,
        queued_at=now if overdue(stage.policy, signals, forecast.level) > 0 else before.queued_at,
    )
    stage = structs.replace(stage, memory=structs.replace(memory, measured=measured, forecast=forecast))
    estimates = _estimates(stage, signals, signals.window_s if elapsed_s > STALE_S else elapsed_s)
    return structs.replace(stage, memory=structs.replace(stage.memory, estimates=estimates))


def _unobserved(stage: Stage) -> Memory:
    """Return the memory after a round without usable signals. After `STALE_S` of them the window begins again.
    Meanwhile the load is estimated from the requests that the activator holds.
    """
    memory, measured, forecast = stage.memory, stage.memory.measured, stage.memory.forecast
    elapsed_s = (stage.now - memory.at).total_seconds()
    came = stage.queued - measured.unserved
    if came > 0 and 0 < elapsed_s <= STALE_S:
        forecast = forecast.after(came / elapsed_s, elapsed_s)
    lasts = max(elapsed_s, (stage.now - measured.at).total_seconds()) > STALE_S
    since = None if lasts else measured.since
    measured = structs.replace(measured, is_new=False, since=since, unserved=stage.queued)
    return structs.replace(memory, measured=measured, forecast=forecast)


def _active(signals: Signals) -> bool:
    """Return whether there may have been a request. An unknown number counts as one."""
    unknown = signals.arrivals is None or signals.unmeasured > 0
    return unknown or bool(signals.arrivals or signals.pending or signals.running)


def _forecast(before: Forecast, signals: Signals, elapsed_s: float) -> Forecast:
    before = Forecast() if elapsed_s > STALE_S else before
    if signals.arrivals is None:
        return before
    if not before.readings:
        return before.after(signals.arrivals, signals.window_s)
    return before.after(signals.arrivals if signals.recent is None else signals.recent, elapsed_s)


def overdue(policy: Policy, signals: Signals, rate: float, to_come: float = 0.0) -> float:
    """Return how many more requests wait, in queues and in engines, than can wait with every target met. `to_come`:
    requests that are expected to join them.
    """
    targets, waiting = policy.targets, (signals.pending or 0.0) + (signals.engine_waiting or 0.0)
    limits = (*targets.latency.values(), *targets.queue_delay.values(), *targets.first_token.values())
    return max(0.0, waiting + to_come - rate * min(limits, default=1.0))


def has_stood(stage: Stage, signals: Signals) -> bool:
    """Return whether the whole window was measured with the present allocation."""
    return stage.memory.since_change_s(stage.now) >= stage.policy.startup_s + signals.window_s


def _estimates(stage: Stage, signals: Signals, elapsed_s: float) -> Estimates:
    """Return service times, the rows of a request, and how an engine is used."""
    policy, measured = stage.policy, stage.memory.measured
    estimates = stage.memory.estimates.of(policy.served.versions)
    queued = (stage.now - measured.queued_at).total_seconds() <= signals.window_s
    engine = estimates.engine
    engine = (engine_use if engine is None else engine.after)(signals, elapsed_s, queued=queued)
    estimates = structs.replace(estimates, engine=engine)
    settled = not queued and has_stood(stage, signals)
    alike = signals.servers <= 1 or (engine is None and (signals.busy or 0.0) > SATURATED)
    if (settled or alike or estimates.service is None) and not _is_mixed(stage, signals):
        batches = _batches(policy, signals, estimates, elapsed_s)
        if batches is not None:
            estimates = estimates.after(batches, missed=settled and _is_missed(policy, signals))
    return _with_rows(signals, estimates, elapsed_s) if settled and policy.bounds.max_batch > 0 else estimates


def _is_missed(policy: Policy, signals: Signals) -> bool:
    """Return whether more requests take longer than a latency target allows."""
    limits = policy.targets.latency.items()
    return any((signals.latency.percentile(name) or 0.0) > limit for name, limit in limits)


def _is_mixed(stage: Stage, signals: Signals) -> bool:
    """Return whether part of the window may have been measured with another number of instances."""
    change = stage.memory.change
    is_recent = stage.memory.since_change_s(stage.now) < signals.window_s
    return is_recent and change is not None and change.before.instances != change.after.instances


def _batches(policy: Policy, signals: Signals, estimates: Estimates, elapsed_s: float) -> Batches | None:
    """Return the executed batches; None where they are unknown or too few."""
    if estimates.engine is not None:
        return estimates.engine.batches(signals, elapsed_s)
    if not (signals.execution and signals.busy and signals.instances and signals.servers):
        return None
    rate = signals.busy * signals.instances / signals.execution
    if estimates.service is not None and rate * signals.window_s < signals.instances:
        return None
    on_device = signals.instances / (signals.servers * policy.bounds.devices)
    busy = 1 + max(0.0, on_device - 1) * signals.busy
    return Batches(signals.batch or 1.0, busy, signals.execution, rate * elapsed_s)


def _with_rows(signals: Signals, estimates: Estimates, elapsed_s: float) -> Estimates:
    """Return the estimates with the mean rows of a request: executed rows divided by answered requests."""
    if not (signals.completions and signals.execution and signals.busy and signals.instances and signals.batch):
        return estimates
    if signals.completions * signals.window_s < WEIGHT:  # too few to tell which of their executions began before
        return estimates
    executed = signals.batch * signals.busy * signals.instances / signals.execution
    new, answered = signals.completions * elapsed_s, estimates.answered
    rows = max(1.0, executed / signals.completions)
    mean = estimates.rows + new / (answered + new) * (rows - estimates.rows)
    return structs.replace(estimates, rows=mean, answered=min(EVIDENCE, answered + new))
