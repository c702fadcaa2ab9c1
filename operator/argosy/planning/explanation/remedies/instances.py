"""Remedies by fewer instances of a model whose instances may be on several GPUs of a server."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

from argosy.planning.demand.divided import fewer_instances, instances_of_all
from argosy.planning.explanation.remedies.devices import PoolDevices
from argosy.planning.explanation.remedies.remedy import Remedy, RemedyKind
from argosy.planning.facts import Demand, Group

_COUNTS, _NODES = 3, 2
"""Numbers of instances that are tried, the most first, and nodes for each."""


def instances(pool: PoolDevices, group: Group) -> Iterator[Remedy]:
    """Yield the most instances with which the replica would have a place, on one GPU or divided."""
    facts, able = pool.trial.facts, pool.able(group)
    for demand in group.demands:
        fewer = fewer_instances(demand, able, facts.headroom, facts.max_gpus_per_server) if demand.divisible else ()
        for changed in islice(fewer, _COUNTS):
            if _fits(pool, group, changed):
                of = f" of {demand.model}" if len(group.demands) > 1 else ""
                text = f"instances {instances_of_all(demand)} → {instances_of_all(changed)}{of}"
                yield Remedy(RemedyKind.SETTING, text)
                break


def _fits(pool: PoolDevices, group: Group, changed: Demand) -> bool:
    demands = tuple(changed if one.model == changed.model else one for one in group.demands)
    other = replace(group, demands=demands)
    names = pool.nearest(other, pool.able(other))[:_NODES]
    return any(pool.trial.fits(pool.trial.part(other, [name])) for name in names)
