"""The facts that a placement plan is made from: a frozen snapshot of nodes and of declared models.

Memory is in bytes, compute in thousandths of one GPU. Names are `namespace/name` keys where several namespaces can
meet.
"""

from argosy.planning.facts.claims import Claim, OtherPools, PreemptibleGpu, highest_claims
from argosy.planning.facts.devices import Device, DraDevice, Gpu, Node
from argosy.planning.facts.groups import Demand, Footprint, Group, Rank, without_candidate, without_surge
from argosy.planning.facts.pool import CurrentServer, Need, PoolFacts, Waiting
from argosy.planning.facts.reports import Refusal, ServerReport

__all__ = [
    "Claim",
    "OtherPools",
    "PreemptibleGpu",
    "highest_claims",
    "Device",
    "DraDevice",
    "Gpu",
    "Node",
    "Demand",
    "Footprint",
    "Group",
    "Rank",
    "without_candidate",
    "without_surge",
    "CurrentServer",
    "Need",
    "PoolFacts",
    "Waiting",
    "Refusal",
    "ServerReport",
]
