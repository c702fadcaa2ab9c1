"""Why a replica may be in no topology domain that has room: how many each may have, and where the others are."""

from dataclasses import replace

from argosy.api import Reason
from argosy.planning.amounts import listed, quantity
from argosy.planning.facts import Group
from argosy.planning.packing.fit.fit_limits import Diagnosis
from argosy.planning.packing.layout import Layout, Replica
from argosy.planning.packing.layout.limits import DomainLimit
from argosy.planning.packing.scoring import fits
from argosy.planning.spreading import DEFAULT_SPREAD

_NAMED = 3
"""Nodes that a message names."""


def too_close(layout: Layout, replica: Replica) -> Diagnosis | None:
    """Diagnose a replica that would fit if its group were not spread."""
    limits, group = layout.topology.limits_of(replica.group), replica.group
    if not limits or not fits(layout, Replica(replace(group, spread=DEFAULT_SPREAD), replica.index)):
        return None
    if unlabelled := next((limit.key for limit in limits if not limit.domains), ""):
        return Diagnosis(
            Reason.REPLICAS_APART,
            f"replicas of {group.name} are spread by {unlabelled} (topologySpread, DoNotSchedule), and no node of the "
            "pool has that label. Label the nodes, or set whenUnsatisfiable: ScheduleAnyway.",
        )
    spread = listed((_limit_text(limit, layout, group) for limit in limits), separator="; and ")
    return Diagnosis(
        Reason.REPLICAS_APART,
        f"replica {replica.index + 1} of {group.name} fits only where its topologySpread (DoNotSchedule) does not "
        f"allow it: {spread}. Add a node elsewhere, free a GPU there, ask for fewer replicas, or set "
        "whenUnsatisfiable: ScheduleAnyway.",
    )


def _limit_text(limit: DomainLimit, layout: Layout, group: Group) -> str:
    counts = sorted(limit.count(layout.hosting(group.name)).items())
    there = listed((f"{domain} has {count}" for domain, count in counts if domain), separator=", ")
    most = f"at most {quantity(limit.most, 'replica')} for each value of {limit.key}"
    text = f"{most}, and {there}" if there else f"{most}, on nodes that could have one"
    nodes = layout.topology.nodes.values()
    unlabelled = [node.name for node in nodes if node.name not in limit.domains and group.runs_on(node)]
    return f"{text}, and {listed(unlabelled, _NAMED)} without that label may have none" if unlabelled else text
