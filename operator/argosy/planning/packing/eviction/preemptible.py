"""Members of a lower priority in whose place a replica would be if its pool let it take it."""

from argosy.api.pool.packing import Preemption
from argosy.planning.amounts import listed
from argosy.planning.packing.eviction.evict import evict
from argosy.planning.packing.eviction.victims import Placed
from argosy.planning.packing.gpu_assignment import Budget
from argosy.planning.packing.layout import Layout, Replica

_TRIALS = 400
"""Trial placements for all of one pool's unschedulable replicas."""
_NAMED = 3


class Preemptible:
    """What replicas without a place would take in one layout."""

    def __init__(self, layout: Layout) -> None:
        self._is_off = layout.topology.facts.preemption is Preemption.NEVER
        self._placed = Placed.of(layout, lower_too=True)
        self._budget = Budget(_TRIALS)

    def words(self, replica: Replica) -> str:
        """Return a sentence that names them; empty where nothing of a lower priority has a place that would do, or
        where it gives way already.
        """
        eviction = evict(self._placed, replica, self._budget) if self._is_off else None
        if eviction is None:
            return ""
        priority, groups = replica.group.priority, {victim.group.name: victim.group for victim in eviction.victims}
        named = listed((f"{one.name} with priority {one.priority}" for one in groups.values()), _NAMED)
        has = "has" if len(groups) == 1 else "have"
        return (
            f" Its priority {priority} finds no place while {named} {has} one that would do, since packing.preemption "
            "of the pool is Never. To give it that place, set packing.preemption: LowerPriority."
        )
