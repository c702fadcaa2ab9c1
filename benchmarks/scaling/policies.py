"""The grid of our own settings, which is tuned over on each trace as the baselines' grids are."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import product

from argosy.fleet.scaling.policy import Policy, Targets

from .baselines import CONCURRENCY

_SLO = (1.0, 0.85, 0.7)
"""What is asked for, as a share of the budget that violations are counted by."""
_BUSY = (0.9, 0.8, 0.65, 0.5, 0.35, 0.25, 0.2)
_BUSY_BESIDE_CONCURRENCY = (0.9, 0.8)
"""What decides is to be the concurrency: here the share of time in use seldom does."""
_DOWN_S = (None, 60.0, 300.0)
"""The stabilisation window, and how long what may go to zero is idle before it does: as KEDA's, that are one."""


def policies(policy: Policy) -> Iterator[tuple[str, Policy]]:
    """Each with its settings in words."""
    for (words, targets), down in product(_targets(policy.targets), _DOWN_S):
        if down is None:
            yield words, replace(policy, targets=targets)
            continue
        pace, window = replace(policy.pace, stabilization_s=down, calm_s=down), f"stabilizationWindow {down:g} s"
        if policy.bounds.min_replicas == 0:
            pace, window = replace(pace, idle_s=down), f"{window}, idleTimeout {down:g} s"
        yield f"{words}, {window}", replace(policy, targets=targets, pace=pace)


def _targets(targets: Targets) -> Iterator[tuple[str, Targets]]:
    for slo, busy in product(_SLO, _BUSY):
        yield (
            f"slo {slo:.0%} of the budget, busy.max {busy:.0%}",
            replace(
                targets,
                latency=_share(slo, targets.latency),
                first_token=_share(slo, targets.first_token),
                busy_low=min(targets.busy_low, busy),
                busy_high=busy,
            ),
        )
    for concurrency, busy in product(CONCURRENCY, _BUSY_BESIDE_CONCURRENCY):
        words = f"concurrency {concurrency:g}, busy.max {busy:.0%}"
        yield words, replace(targets, busy_high=busy, concurrency=concurrency)


def _share(share: float, limits: Mapping[str, float]) -> dict[str, float]:
    return {name: share * limit for name, limit in limits.items()}
