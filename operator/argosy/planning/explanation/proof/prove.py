"""What is proven of a plan, pool by pool, and the better plan that was found."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from argosy.api import Reason
from argosy.api.values.identity import PoolKey
from argosy.planning.explanation.difference import Running
from argosy.planning.explanation.proof.program import Program, Seats, Solution, servers_of
from argosy.planning.facts import CurrentServer, PoolFacts
from argosy.planning.nodes.reservations import reserved
from argosy.planning.packing.capacity import gpus_of, is_cpu_only
from argosy.planning.packing.lower_bound import fewest_of_pool
from argosy.planning.packing.solve import pack
from argosy.planning.plan import FleetPlan, PoolPlan, replica_counts

_MOST_VARIABLES = 60_000
"""Variables of a program that is searched: a few hundred models on a few hundred GPUs. Larger ones prove nothing."""


@dataclass(frozen=True, slots=True)
class Proof:
    """What is proven of a pool. `gpus`: used by its plan, `before` by the plan that the search began with; `bound`:
    GPUs that no plan does without; `placed`: replicas that have a place by the search alone. `complete`: whether it is
    proven that no further replica has a place. `note`: why nothing was searched.
    """

    pool: PoolKey
    gpus: int
    before: int
    bound: int
    placed: int = 0
    complete: bool = False
    note: str = ""

    @property
    def is_optimal(self) -> bool:
        """Whether the plan takes the fewest GPUs."""
        return self.gpus <= self.bound


def prove(
    facts: Sequence[PoolFacts], plan: FleetPlan, effort: float, running: Running | None = None
) -> tuple[FleetPlan, tuple[Proof, ...]]:
    """Return the best plan that is known after a search, and what is proven of each pool.

    `effort` is the most of CP-SAT's deterministic time for each pool, about seconds of CPU: every machine proves as
    much. What runs stays where the plan leaves it. Raises ModuleNotFoundError without OR-Tools.
    """
    plans, proofs = {pool.pool: pool for pool in plan.pools}, list[Proof]()
    for pool in facts:
        others = {key: of.current for key, of in plans.items() if key != pool.pool}
        before = plans[pool.pool]
        nodes = tuple(node for node in reserved(pool.nodes, before.current, others) if node.ready)
        search = _PoolSearch(replace(pool, nodes=nodes), before, (running or {}).get(pool.pool, ()), effort)
        plans[pool.pool], proof = search.result()
        proofs.append(proof)
    return FleetPlan(tuple(plans[pool.pool] for pool in plan.pools)), tuple(proofs)


class _PoolSearch:
    def __init__(self, facts: PoolFacts, plan: PoolPlan, running: Sequence[CurrentServer], effort: float) -> None:
        misplaced = {one.group for server in plan.servers for one in server.placements if one.misplaced}
        groups = tuple(group.anywhere() if group.name in misplaced else group for group in facts.groups)
        self._facts, self._plan = replace(facts, groups=groups), plan
        self._running, self._effort = running, effort
        self._bound = fewest_of_pool(plan, facts)

    def result(self) -> tuple[PoolPlan, Proof]:
        """Search for a better plan of the pool, and return it with what is proven."""
        lacking = _lacking(self._plan)
        if note := self._note():
            return self._plan, self._proof(self._plan, self._bound, note=note)
        best, complete = self._plan, not lacking
        if lacking:
            best, complete = self._more_placed(lacking)
        fewer = self._fewer_gpus(best)
        return fewer[0], replace(self._proof(*fewer), complete=complete)

    def _proof(self, plan: PoolPlan, bound: int, note: str = "") -> Proof:
        placed = sum(replica_counts(plan.servers).values()) - sum(replica_counts(self._plan.servers).values())
        return Proof(self._facts.pool, _needed(plan), _needed(self._plan), bound, placed, note=note)

    def _note(self) -> str:
        facts = self._facts
        if facts.suspended or is_cpu_only(facts) or not any(gpus_of(node) for node in facts.nodes):
            return "it has no GPUs to be spared"
        if any(group.in_rollout for group in facts.groups):
            return "a rollout is under way, whose candidates take memory for a while"
        size = self._program(replica_counts(self._plan.servers), {}, _needed(self._plan)).size
        if size > _MOST_VARIABLES:
            return f"it is too large to be searched ({size} variables, and the most is {_MOST_VARIABLES})"
        return ""

    def _program(self, placed: Mapping[str, int], optional: Mapping[str, int], most: int) -> Program:
        return Program(self._facts, placed, optional, self._fixed(placed), most)

    def _fixed(self, placed: Mapping[str, int]) -> Seats:
        """Return where that is which runs, and which the plan leaves there."""
        before = {server.name: server for server in self._running}
        seats: dict[tuple[str, int], dict[str, tuple[str, tuple[int, ...]]]] = {}
        numbers = Counter[str]()
        for server in self._plan.servers:
            ran = before[server.name].placed if server.name in before else {}
            for name in sorted(server.groups):
                mine = [one for one in server.placements if one.group == name and one.gpus]
                if mine and all(ran.get(one.model) == one.gpus for one in mine) and numbers[name] < placed.get(name, 0):
                    seats[name, numbers[name]] = {one.model: (server.node, one.gpus) for one in mine}
                    numbers[name] += 1
        return seats

    def _more_placed(self, lacking: Counter[str]) -> tuple[PoolPlan, bool]:
        """Return the plan with more replicas if there is one, and whether it is proven that no more have a place."""
        every = sum(len(gpus_of(node)) for node in self._facts.nodes)
        program = self._program(replica_counts(self._plan.servers), lacking, every)
        if program.size > _MOST_VARIABLES:
            return self._plan, False
        solution = program.most_placed(self._effort)
        better = self._planned(solution)
        if better is None or not _lacking(better) < lacking:
            better = self._plan
        placed = sum(lacking.values()) - sum(_lacking(better).values())
        return better, solution.bound <= placed

    def _fewer_gpus(self, plan: PoolPlan) -> tuple[PoolPlan, int]:
        """Return the plan with the fewest GPUs that is known, and the bound."""
        bound, lacking = fewest_of_pool(plan, self._facts), _lacking(plan)
        while (used := _needed(plan)) > bound:
            solution = self._program(replica_counts(plan.servers), {}, used).fewest_gpus(self._effort, used)
            bound = max(bound, solution.bound)
            better = self._planned(solution)
            if better is None or _lacking(better) != lacking or _needed(better) >= used:
                break
            plan = better
        return plan, bound

    def _planned(self, solution: Solution) -> PoolPlan | None:
        """Return the plan of what was found, by the planner and all of its rules; None if nothing was."""
        if solution.seats is None:
            return None
        running = {server.name for server in self._running}
        stays = [server for server in self._plan.current if server.name in running]
        taken = self._facts.taken | {server.name for server in self._running}
        servers = servers_of(solution.seats, stays, self._facts.pool.name, taken)
        plan = pack(replace(self._facts, current=tuple(servers)))
        waiting = tuple(one for one in self._plan.unplaced if one.reason == Reason.PENDING)
        return replace(plan, withheld=self._plan.withheld, unplaced=(*plan.unplaced, *waiting))


def _needed(plan: PoolPlan) -> int:
    """Return the GPUs that models have; servers may keep further ones for a while."""
    return len({(server.node, gpu) for server in plan.servers for one in server.placements for gpu in one.gpus})


def _lacking(plan: PoolPlan) -> Counter[str]:
    return Counter(one.group for one in plan.unplaced if one.reason != Reason.PENDING)
