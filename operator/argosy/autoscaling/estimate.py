"""What signals say of load and service, before anything is decided."""

from dataclasses import replace
from datetime import datetime, timedelta
from math import inf
from typing import Any

from msgspec import structs

from argosy.autoscaling.capacity.engine import engine_use
from argosy.autoscaling.capacity.service import Batches, Service
from argosy.autoscaling.forecast import Forecast
from argosy.autoscaling.memory import Estimates, Measured, Memory
from argosy.autoscaling.metrics.signals import Signals
from argosy.autoscaling.policy import Policy
from argosy.autoscaling.settings import EVIDENCE, ROW_SHARE, STALE_S, WEIGHT

_NEWER = timedelta(seconds=0.1)
"""Two clocks may give one reading two times that differ by less."""
_NUMBERS = ("arrivals", "recent", "completions", "rejections", "timeouts", "out_of_memory", "pending", "running",
            "execution", "batch", "instances", "busy", "tokens", "engine_waiting", "kv_cache")  # fmt: skip


def unusable(signals: Signals | None, now: datetime) -> str:
    """Return why nothing can be decided from these signals; an empty text where it can."""
    if signals is None:
        return "nothing is measured"
    age = (now - signals.at).total_seconds()
    stale_s = max(STALE_S, 3 * signals.recent_s)
    if age > stale_s:
        return f"what was measured is {age:.0f} s old, of more than {stale_s:g} s it says nothing"
    if age < -STALE_S:
        return f"what was measured is dated {-age:.0f} s ahead of the clock here"
    return ""


def estimated(
    policy: Policy, signals: Signals | None, memory: Memory, now: datetime, queued: int
) -> tuple[Memory, Signals | None]:
    """Return the memory after these signals, and what of them is of use; None where nothing is. `queued`: requests that
    wait where nothing serves the member, which are all that is known of its load then.
    """
    if signals is None or unusable(signals, now):
        return _queued(_missed(memory, now), memory.at, queued, now), None
    signals = _possible(signals)
    before = memory.measured
    if before.at is not None and signals.at - before.at < _NEWER:
        measured = structs.replace(before, is_new=False, since=before.since or now)
        return structs.replace(memory, measured=measured), signals
    elapsed = (signals.at - before.at).total_seconds() if before.at is not None else 0.0
    gap = before.at is None or elapsed > STALE_S
    measured = Measured(
        signals.at,
        now if gap or before.since is None else before.since,
        is_new=True,
        active_at=now if before.active_at is None or _active(signals) else before.active_at,
        queued_at=before.queued_at,
    )
    forecast = _forecast(Forecast() if gap else memory.forecast, signals, elapsed)
    if overdue(policy, signals, forecast.level) > 0:
        measured = structs.replace(measured, queued_at=now)
    memory = structs.replace(memory, measured=measured, forecast=forecast)
    estimates = _served(policy, signals, memory, signals.window_s if gap else elapsed, now)
    return structs.replace(memory, estimates=estimates), signals


def _missed(memory: Memory, now: datetime) -> Memory:
    """Return the memory after a look without usable signals; once that lasts, the window begins again."""
    last = memory.at or now
    gap = max(now - last, now - (memory.measured.at or last)) > timedelta(seconds=STALE_S)
    since = None if gap else memory.measured.since
    return structs.replace(memory, measured=structs.replace(memory.measured, is_new=False, since=since))


def _queued(memory: Memory, last: datetime | None, queued: int, now: datetime) -> Memory:
    came, elapsed = queued - memory.measured.unserved, (now - last).total_seconds() if last is not None else 0.0
    if came > 0 and elapsed > 0:
        before = memory.forecast if elapsed <= STALE_S else Forecast()
        memory = structs.replace(memory, forecast=before.after(came / elapsed, elapsed))
    return structs.replace(memory, measured=structs.replace(memory.measured, unserved=queued))


def _possible(signals: Signals) -> Signals:
    """Return the signals without what cannot be: a number that is not finite, or negative, is not known."""
    absurd: dict[str, Any] = {}
    for name in _NUMBERS:
        value = getattr(signals, name)
        if value is not None and not 0 <= value < inf:
            absurd[name] = None
    return replace(signals, **absurd) if absurd else signals


def _active(signals: Signals) -> bool:
    """Return whether there may have been a request: what was not measured may have been one."""
    unknown = signals.arrivals is None or signals.unmeasured > 0
    return unknown or bool(signals.arrivals) or bool(signals.pending) or bool(signals.running)


def _forecast(before: Forecast, signals: Signals, elapsed: float) -> Forecast:
    if signals.arrivals is None:
        return before
    if not before.readings:
        return before.after(signals.arrivals, signals.window_s)
    return before.after(signals.arrivals if signals.recent is None else signals.recent, elapsed)


def waiting(signals: Signals) -> float:
    """Return the requests in queues, those inside of engines among them."""
    return (signals.pending or 0.0) + (signals.engine_waiting or 0.0)


def overdue(policy: Policy, signals: Signals, rate: float, to_come: float = 0.0) -> float:
    """Return the waiting requests, with those to come, beyond what may wait with every target met."""
    targets = policy.targets
    limits = (*targets.latency.values(), *targets.queue_delay.values(), *targets.first_token.values())
    return max(0.0, waiting(signals) + to_come - rate * min(limits, default=1.0))


def has_stood(policy: Policy, memory: Memory, window_s: float, now: datetime) -> bool:
    """Return whether all that is measured is of the present allocation."""
    return memory.change is None or now - memory.change.at >= timedelta(seconds=policy.startup_s + window_s)


def _was_queued(memory: Memory, window_s: float, now: datetime) -> bool:
    """Return whether more requests waited than may, at some time of the window."""
    queued_at = memory.measured.queued_at
    return queued_at is not None and now - queued_at <= timedelta(seconds=window_s)


def _settled(policy: Policy, memory: Memory, window_s: float, now: datetime) -> bool:
    """Return whether what is measured is of the present allocation, and of no queue of before."""
    return not _was_queued(memory, window_s, now) and has_stood(policy, memory, window_s, now)


def _served(policy: Policy, signals: Signals, memory: Memory, elapsed: float, now: datetime) -> Estimates:
    """Return service times and the rows of a request. Servers that are not alike, as right after a change or with a
    queue on one of them, say little of what one of them does.
    """
    estimates, engine = memory.estimates, memory.estimates.engine
    if engine is None:
        engine = engine_use(signals)
    else:
        engine = engine.after(signals, elapsed, queued=_was_queued(memory, signals.window_s, now))
    estimates = structs.replace(estimates, engine=engine)
    settled = _settled(policy, memory, signals.window_s, now)
    alike = signals.servers <= 1 or (engine is None and (signals.busy or 0.0) > 1 - ROW_SHARE)
    if settled or alike or estimates.service is None:
        batches = _batches(policy, signals, estimates, elapsed)
        if batches is not None and not _mixed(policy, signals, memory, now):
            estimates = _learned(policy, estimates, batches)
    return _with_rows(signals, estimates, elapsed) if settled and policy.bounds.max_batch > 0 else estimates


def _learned(policy: Policy, estimates: Estimates, batches: Batches) -> Estimates:
    prompt_s = 0.0 if estimates.engine is None else estimates.engine.prompt_s
    experience = estimates.experience.after(batches, prompt_s)
    if estimates.experience.explains(batches, estimates.service, prompt_s):
        return structs.replace(estimates, experience=experience)
    service = _in_use(policy, estimates, experience.service(prompt_s))
    return structs.replace(estimates, experience=experience, service=service)


def _in_use(policy: Policy, estimates: Estimates, new: Service | None) -> Service | None:
    """Return the service in use, which stays until another is really another."""
    used, bounds = estimates.service, policy.bounds
    if used is None or new is None:
        return new or used
    full = bounds.max_batch if estimates.engine is None else estimates.engine.slots
    return used if new.is_near(used, max(1.0, full), bounds.max_instances) else new


def _mixed(policy: Policy, signals: Signals, memory: Memory, now: datetime) -> bool:
    """Return whether some of what was measured may have been executed with other instances."""
    last = memory.change
    return (
        last is not None
        and last.before.instances != last.after.instances
        and (now - last.at).total_seconds() < signals.window_s
    )


def _batches(policy: Policy, signals: Signals, estimates: Estimates, elapsed: float) -> Batches | None:
    """Return what was executed; None where that is not known, or too little to tell."""
    if estimates.engine is not None:
        return estimates.engine.batches(signals.window_s, elapsed)
    if not (signals.execution and signals.busy and signals.instances and signals.servers):
        return None
    rate = signals.busy * signals.instances / signals.execution
    if estimates.service is not None and rate * signals.window_s < signals.instances:
        return None
    on_device = signals.instances / (signals.servers * policy.bounds.devices)
    busy = 1 + max(0.0, on_device - 1) * signals.busy
    return Batches(signals.batch or 1.0, busy, signals.execution, rate * elapsed)


def _with_rows(signals: Signals, estimates: Estimates, elapsed: float) -> Estimates:
    """Return the estimates with the rows of a request: rows that were executed, over requests that were answered."""
    if not (signals.completions and signals.execution and signals.busy and signals.instances and signals.batch):
        return estimates
    if signals.completions * signals.window_s < WEIGHT:  # too few to tell which of their executions began before
        return estimates
    executed = signals.batch * signals.busy * signals.instances / signals.execution
    new, answered = signals.completions * elapsed, estimates.answered
    rows = max(1.0, executed / signals.completions)
    mean = estimates.rows + new / (answered + new) * (rows - estimates.rows)
    return structs.replace(estimates, rows=mean, answered=min(EVIDENCE, answered + new))
