"""Peaks of crashed processes: room next to a model for what it had when it crashed, where nothing lacks a place for it.

A peak may be true, or that of one bad request. So it keeps others away from a model, but it takes no place from
anything, and leaves the model itself none the less placeable.
"""

from collections.abc import Callable
from dataclasses import replace

from argosy.planning.facts import Footprint, PoolFacts
from argosy.planning.packing.eviction.by_rank import lack
from argosy.planning.packing.eviction.settling import Settled


def settle_with_peaks(facts: PoolFacts, settle: Callable[[PoolFacts], Settled]) -> Settled:
    """Return the settled layout in which peaks count, unless less is left out without them."""
    cautious = with_peaks(facts)
    settled = settle(cautious)
    if cautious is facts or not settled.unschedulable:
        return settled
    return min(settled, settle(facts), key=lack)


def with_peaks(facts: PoolFacts) -> PoolFacts:
    """Return the facts in which models take what they had when they crashed, where that is more; the same ones where
    it is not.
    """
    groups = tuple(
        group.with_footprints(_with_peak) if any(demand.footprint.peak for demand in group.demands) else group
        for group in facts.groups
    )
    return facts if groups == facts.groups else replace(facts, groups=groups)


def _with_peak(need: Footprint) -> Footprint:
    return replace(need, memory=max(need.memory, need.peak), peak=0)
