"""Load that comes back: how long replicas that it left are kept, so that it need not wait for them again.

What is kept costs GPU time, what has to start again costs requests. A gap is bridged if gaps were short of late,
counted in startup times, and if the load's return was felt: requests queued up.
"""

from datetime import datetime
from math import inf

from msgspec import structs

from argosy.autoscaling.learning.memory import Memory, Peak
from argosy.autoscaling.policy import Policy

_WORTH = 20.0
"""Startup times: a gap that is longer is not bridged."""
_LONGER = 1.5
"""The next gap may be so many times the longest one of late."""
_KEPT = 3
_VAIN = 2
"""Loads that left and did not come back within the window, one after the other, after which it is not waited for."""
_ALIKE = 0.8
"""The share of a rate from which on it is the same load."""


def hold_s(policy: Policy, memory: Memory, now: datetime) -> float:
    """Return seconds for which what was asked for is kept: the stabilisation window, or longer to bridge a gap."""
    longest = min(_LONGER * max(memory.returns, default=0.0), _worth_s(policy))
    whole = policy.pace.stabilization_s
    in_vain = len(memory.gaps) >= _VAIN and min(memory.gaps) > whole
    gone = in_vain or memory.recurrence.is_over(now)
    return max(min(policy.pace.calm_s, whole) if gone else whole, longest)


def watched(policy: Policy, memory: Memory, rate: float, now: datetime) -> Memory:
    """With what this rate says of loads that go and come."""
    peak = memory.peak
    if peak is None or rate > peak.rate:
        peak = Peak(now, rate)
    elif rate < _ALIKE * peak.rate:
        return _away(policy, memory, peak, rate, now)
    returns, gap = memory.returns, 0.0 if memory.peak is None else (now - memory.peak.at).total_seconds()
    gaps = (*memory.gaps, gap)[-_KEPT:] if gap > policy.pace.calm_s else memory.gaps
    if memory.queued_at == now and policy.pace.stabilization_s < gap <= _worth_s(policy):
        returns = (*returns, gap)[-_KEPT:]
    return structs.replace(memory, peak=Peak(now, peak.rate), returns=returns, gaps=gaps)


def _away(policy: Policy, memory: Memory, peak: Peak, rate: float, now: datetime) -> Memory:
    """What is away for longer than is worth while has gone, and what was kept for it was kept in vain."""
    gap = (now - peak.at).total_seconds()
    if gap <= _worth_s(policy):
        return memory
    gaps = (*memory.gaps, inf)[-_KEPT:]
    return structs.replace(memory, peak=Peak(now, rate), returns=memory.returns[1:], gaps=gaps)


def _worth_s(policy: Policy) -> float:
    return _WORTH * policy.startup_s
