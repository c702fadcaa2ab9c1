"""Each node's GPUs, filled by the memory that models take, with what moves and what fits nowhere."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import cycle

from argosy.api.values.identity import PoolKey
from argosy.cli.planning.explanation.consolidation import Steps, consolidation_lines
from argosy.cli.planning.explanation.difference import difference_lines
from argosy.cli.planning.explanation.preempted import preempted_lines
from argosy.cli.planning.picture.arrows import Moving, arrows
from argosy.cli.planning.picture.node_picture import GAP, ON_CPU, NodePicture, Spot, width_for
from argosy.cli.planning.picture.svg import LINE, MARGIN, Point, broken, document, lines, text
from argosy.cli.planning.plan_table import unplaced_lines
from argosy.planning.amounts import quantity
from argosy.planning.explanation.difference import Difference, Location
from argosy.planning.explanation.remedies.find import Remedies
from argosy.planning.facts import PoolFacts
from argosy.planning.packing.capacity import gpus_of
from argosy.planning.packing.lower_bound import fewest_gpus
from argosy.planning.plan import FleetPlan

_HEADING = 22
# Okabe and Ito's palette, which colour-blind readers can tell apart.
_COLOURS = ("#56b4e9", "#e69f00", "#009e73", "#cc79a7", "#f0e442", "#d55e00", "#0072b2")
Points = Mapping[PoolKey, Mapping[Spot, Point]]
"""Where the devices of each pool are in the picture, and the models on them."""


def plan_picture(
    plan: FleetPlan,
    facts: Sequence[PoolFacts],
    changes: Difference | None = None,
    remedies: Remedies | None = None,
    moves: Steps | None = None,
) -> str:
    """Return the plan as an SVG document: a frame for each node, with its GPUs. Arrows are what moves, and in blue what
    consolidation would move; what else changes, what fits nowhere and what lost its place are listed below.
    """
    gpus = max((len(gpus_of(node)) for pool_facts in facts for node in pool_facts.nodes), default=0)
    width, top = width_for(gpus), MARGIN
    parts, points = list[str](), dict[PoolKey, dict[Spot, Point]]()

    def put(texts: Sequence[str], style: str = "", gap: int = GAP) -> None:
        nonlocal top, parts
        parts += lines(MARGIN, top, width - 2 * MARGIN, texts, style)
        top += LINE * len(broken(texts, width - 2 * MARGIN, style)) + (gap if texts else 0)

    put([_summary(plan, facts)], "title")
    for pool, nodes in _pools(plan, facts):
        parts.append(text(MARGIN, top + 12, f"Pool {pool}"))
        top, of_pool = top + _HEADING, points.setdefault(pool, {})
        for node in nodes:
            parts += node.elements(top, width - 2 * MARGIN)
            of_pool.update(node.points(top))
            top += node.height + GAP
    parts += arrows([*_changing(changes, points), *_recommended(plan, moves or {}, points)])
    put([*unplaced_lines(plan, remedies), *preempted_lines(plan)], "lack")
    put(difference_lines(changes) if changes is not None else [])
    put([*consolidation_lines(moves or {})], "moves")
    return document(width, top + MARGIN - GAP, parts)


def _summary(plan: FleetPlan, facts: Sequence[PoolFacts]) -> str:
    totals = f"{quantity(plan.gpus_used, 'GPU')} used; one model per GPU would take {plan.gpus_one_per_model}; "
    unplaced = sum(len(pool.unplaced) for pool in plan.pools)
    return totals + f"lower bound {fewest_gpus(plan, facts)}" + (f"; {unplaced} unplaced" if unplaced else "")


def _pools(plan: FleetPlan, facts: Sequence[PoolFacts]) -> Iterator[tuple[PoolKey, list[NodePicture]]]:
    """Yield each pool with its nodes."""
    models = [p.model for pool in plan.pools for server in pool.servers for p in server.placements]
    colours = dict(zip(dict.fromkeys(models), cycle(_COLOURS), strict=False))
    holders = {
        (server.node, gpu): f"pool {pool.pool}" for pool in plan.pools for server in pool.servers for gpu in server.gpus
    }
    by_pool = {pool_facts.pool: pool_facts for pool_facts in facts}
    for pool in plan.pools:
        here = by_pool[pool.pool]
        yield pool.pool, [NodePicture(node, pool, holders, here.headroom, colours) for node in here.nodes]


def _changing(changes: Difference | None, points: Points) -> Iterator[Moving]:
    """Yield what moves between devices that are there."""
    for change in changes.moved if changes is not None else ():
        start, end = (_point(location, points[change.pool]) for location in (change.before, change.after))
        if start is not None and end is not None:
            yield Moving(change.model, start, end)


def _point(location: Location | None, points: Mapping[Spot, Point]) -> Point | None:
    if location is None:
        return None
    return points.get((location.node, location.gpus[0] if location.gpus else ON_CPU, ""))


def _recommended(plan: FleetPlan, moves: Steps, points: Points) -> Iterator[Moving]:
    """Yield what consolidation would move, from its block on the GPU that has it to the GPU that would."""
    located = dict[tuple[PoolKey, str, str], Spot]()
    for pool, server, placement in ((p, s, one) for p in plan.pools for s in p.servers for one in s.placements):
        gpu = placement.gpus[0] if placement.gpus else ON_CPU
        replica = pool.pool, server.name, placement.group
        if located.get(replica, ("", ON_CPU, ""))[1] == ON_CPU:
            located[replica] = server.node, gpu, placement.model
    for key, steps in moves.items():
        for move in (move for step in steps for move in step.moves):
            start = located.get((key, move.source, move.group))
            end = move.target_node, next((gpu for of_model in move.gpus.values() for gpu in of_model), ON_CPU), ""
            if start is not None and {start, end} <= points[key].keys():
                yield Moving(move.group, points[key][start], points[key][end], "moves")
