"""Reconciles resources, nodes and servers' reports: the one function that every shell calls. Pure.

It is called whenever an input changes, and each outcome is one step: a new version is loaded next to the old one, then
the ensembles change to it, then the old one is unloaded. It has two parts: `decide`, which runs for pools that share
nodes one after another, and `conclude`, which only needs the decisions.

memories.py    what is known of rollouts from before.
nodes.py       which GPUs may be planned with: cordons, running builds, readiness.
checks.py      what is wrong between resources.
specs.py       the specs that are acted upon: valid together, with built engines, and with proven versions.
strategies.py  how candidates of rollouts replace stable revisions, by what is free.
decide.py      the stages of a decision, one after another.
outcome.py     what follows from the decisions: statuses, models' configurations, the spare capacity.
"""

from datetime import datetime, timedelta

from argosy.api.values.reuse import RoundCache
from argosy.planning.migration.pool_migration import DRAIN_PERIOD
from argosy.reconcile.decide import decide
from argosy.reconcile.outcome import RoundOutcome, conclude
from argosy.snapshot import FleetSnapshot

__all__ = ["RoundOutcome", "conclude", "decide", "reconcile"]


def reconcile(
    snapshot: FleetSnapshot,
    now: datetime,
    drain_period: timedelta = DRAIN_PERIOD,
    cache: RoundCache | None = None,
) -> RoundOutcome:
    """Return the outcome of one round. `now` has a time zone. `cache`: values of the round before, for speed alone.

    Problems between resources are found here, and take a resource out of the plan.
    """
    return conclude(decide(snapshot, now, drain_period, cache=cache), cache)
