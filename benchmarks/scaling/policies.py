"""The grids of our own settings, which are tuned over on each trace as the baselines' grids are: `policies` for who
wants to hold the budget, `lenient` for who may be late.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import product

from argosy.autoscaling.policy import Policy, Targets

from .baselines import CONCURRENCY

_SLO = (1.0, 0.85, 0.7)
"""What is asked for, as a share of the budget that violations are counted by."""
_BUSY = (0.9, 0.8, 0.65, 0.5, 0.35, 0.25, 0.2)
_BUSY_BESIDE_CONCURRENCY = (0.9, 0.8)
"""What decides is to be the concurrency: here the share of time in use seldom does."""
_DOWN_S = (None, 60.0, 300.0)
"""The stabilisation window, and how long what may go to zero is idle before it does: as KEDA's, that are one."""
_LATE_SLO = (1.0, 2.0, 4.0, 8.0)
_FEW = (None, 6, 4, 3)
"""The most replicas; the busiest minutes would take eight."""
_SOON_S = (None, 20.0, 60.0)


def policies(policy: Policy) -> Iterator[tuple[str, Policy]]:
    """Each with its settings in words."""
    for (words, targets), down in product(_targets(policy.targets), _DOWN_S):
        yield _waiting(words, replace(policy, targets=targets), down)


def lenient(policy: Policy) -> Iterator[tuple[str, Policy]]:
    """Each with its settings in words: an SLO of several budgets, few replicas. Only beside who is late as often."""
    for slo, most, down in product(_LATE_SLO, _FEW, _SOON_S):
        words, targets = _of_budget(policy.targets, slo, max(_BUSY))
        bounds = policy.bounds
        if most is not None:
            words, bounds = f"{words}, maxReplicas {most}", replace(bounds, max_replicas=most)
        yield _waiting(words, replace(policy, targets=targets, bounds=bounds), down)


def _waiting(words: str, policy: Policy, down: float | None) -> tuple[str, Policy]:
    """With so long a window before it goes down, or its own."""
    if down is None:
        return words, policy
    pace, window = replace(policy.pace, stabilization_s=down, calm_s=down), f"stabilizationWindow {down:g} s"
    if policy.bounds.min_replicas == 0:
        pace, window = replace(pace, idle_s=down), f"{window}, idleTimeout {down:g} s"
    return f"{words}, {window}", replace(policy, pace=pace)


def _targets(targets: Targets) -> Iterator[tuple[str, Targets]]:
    for slo, busy in product(_SLO, _BUSY):
        yield _of_budget(targets, slo, busy)
    for concurrency, busy in product(CONCURRENCY, _BUSY_BESIDE_CONCURRENCY):
        words = f"concurrency {concurrency:g}, busy.max {busy:.0%}"
        yield words, replace(targets, busy_high=busy, concurrency=concurrency)


def _of_budget(targets: Targets, slo: float, busy: float) -> tuple[str, Targets]:
    found = replace(
        targets,
        latency=_share(slo, targets.latency),
        first_token=_share(slo, targets.first_token),
        busy_low=min(targets.busy_low, busy),
        busy_high=busy,
    )
    return f"slo {slo:.0%} of the budget, busy.max {busy:.0%}", found


def _share(share: float, limits: Mapping[str, float]) -> dict[str, float]:
    return {name: share * limit for name, limit in limits.items()}
