"""Each node's GPUs, filled by the memory that models take, with what moves and what fits nowhere."""

from collections.abc import Iterator, Mapping, Sequence

from argosy.cli.planning.difference_view import difference_lines
from argosy.cli.planning.explanation.preempted import preempted_lines
from argosy.cli.planning.picture.svg import LINE, MARGIN, Point, arrow, box, broken, document, lines, text
from argosy.cli.planning.plan_table import unplaced_lines
from argosy.planning.amounts import gib, percent, quantity
from argosy.planning.explanation.difference import Difference, Location
from argosy.planning.explanation.remedies.find import Remedies
from argosy.planning.facts import Device, Gpu, Node, PoolFacts
from argosy.planning.nodes.slices import device_name
from argosy.planning.packing.capacity import FULL_COMPUTE, gpus_of
from argosy.planning.packing.lower_bound import fewest_gpus
from argosy.planning.plan import FleetPlan, Placement, PoolPlan, ServerPlan

# Lengths are in pixels.
_GAP = 12
_GPU_WIDTH, _GPU_HEIGHT, _IDLE_HEIGHT, _CAPTION = 170, 120, 24, 56
_NODE_HEADER, _CPU_HEIGHT, _LABEL_HEIGHT, _BAR_HEIGHT = 26, 28, 18, 5
_ON_CPU = -1
"""What stands for a node's CPU among the indexes of its devices."""
# Okabe and Ito's palette, which colour-blind readers can tell apart.
_COLOURS = ("#56b4e9", "#e69f00", "#009e73", "#cc79a7", "#f0e442", "#d55e00", "#0072b2")


def plan_picture(
    plan: FleetPlan,
    facts: Sequence[PoolFacts],
    changes: Difference | None = None,
    remedies: Remedies | None = None,
) -> str:
    """Return the plan as an SVG document: a row for each node, a column for each of its GPUs. Arrows are what moves;
    what else changes, what fits nowhere and what lost its place are listed below.
    """
    by_pool = {pool_facts.pool: pool_facts for pool_facts in facts}
    models = [p.model for pool in plan.pools for server in pool.servers for p in server.placements]
    colours = {model: _COLOURS[i % len(_COLOURS)] for i, model in enumerate(dict.fromkeys(models))}
    gpus = max((len(gpus_of(node)) for pool_facts in facts for node in pool_facts.nodes), default=0)
    width = 2 * MARGIN + _GAP + max(gpus, 2) * (_GPU_WIDTH + _GAP)
    top, points = MARGIN, dict[Device, Point]()
    parts = [text(MARGIN, top + 14, _summary(plan, facts), "title")]
    top += 30
    for pool in plan.pools:
        parts.append(text(MARGIN, top + 12, f"Pool {pool.pool}"))
        top += 22
        for node in by_pool[pool.pool].nodes:
            parts += _node(node, pool, colours, top, width - 2 * MARGIN)
            points |= _points(node, pool, top)
            top += _node_height(node, pool) + _GAP
    parts += _arrows(changes, points) if changes is not None else ()
    lacks = [*unplaced_lines(plan, remedies), *preempted_lines(plan)]
    for texts, style in ((lacks, "lack"), (difference_lines(changes) if changes else [], "")):
        parts += lines(MARGIN, top, width - 2 * MARGIN, texts, style)
        top += LINE * len(broken(texts, width - 2 * MARGIN)) + (_GAP if texts else 0)
    return document(width, top + MARGIN - _GAP, parts)


def _summary(plan: FleetPlan, facts: Sequence[PoolFacts]) -> str:
    totals = f"{quantity(plan.gpus_used, 'GPU')} used; one model per GPU would take {plan.gpus_one_per_model}; "
    unplaced = sum(len(pool.unplaced) for pool in plan.pools)
    return totals + f"lower bound {fewest_gpus(plan, facts)}" + (f"; {unplaced} unplaced" if unplaced else "")


def _points(node: Node, pool: PoolPlan, top: int) -> Iterator[tuple[Device, Point]]:
    """Yield the middle of each GPU of a node, and of the node's name under the index -1."""
    used = {gpu for server in pool.servers if server.node == node.name for gpu in server.gpus}
    yield (node.name, _ON_CPU), (MARGIN + _GAP + 20, top + _NODE_HEADER // 2)
    for at, gpu in enumerate(gpus_of(node)):
        left = MARGIN + _GAP + at * (_GPU_WIDTH + _GAP)
        height = _CAPTION + _GPU_HEIGHT // 2 if gpu.index in used else _IDLE_HEIGHT // 2 + 4
        yield (node.name, gpu.index), (left + _GPU_WIDTH // 2, top + _NODE_HEADER + height)


def _arrows(changes: Difference, points: Mapping[Device, Point]) -> Iterator[str]:
    """Yield an arrow for each replica that moves between devices which are there."""
    for change in changes.moved:
        start, end = (_point(location, points) for location in (change.before, change.after))
        if start is not None and end is not None and start != end:
            yield arrow(start, end, f"{change.model} moves")


def _point(location: Location | None, points: Mapping[Device, Point]) -> Point | None:
    if location is None:
        return None
    return points.get((location.node, location.gpus[0] if location.gpus else _ON_CPU))


def _node(node: Node, pool: PoolPlan, colours: Mapping[str, str], top: int, width: int) -> Iterator[str]:
    servers = [server for server in pool.servers if server.node == node.name]
    yield box(MARGIN, top, width, _node_height(node, pool), "node")
    yield text(MARGIN + _GAP, top + 20, f"{node.name}  {node.product}".rstrip())
    left, below = MARGIN + _GAP, top + _NODE_HEADER
    for gpu in gpus_of(node):
        server = next((server for server in servers if gpu.index in server.gpus), None)
        if server is None:
            yield from _idle_gpu(gpu, left, below)
        else:
            yield from _used_gpu(gpu, server, colours, left, below)
        left += _GPU_WIDTH + _GAP
    below += _gpus_height(node, servers)
    for server in servers:
        if placements := _on_cpu(server):
            models = ", ".join(map(_named, placements))
            yield text(MARGIN + _GAP, below + 16, f"CPU, server {server.name}: {models}")
            below += _CPU_HEIGHT


def _node_height(node: Node, pool: PoolPlan) -> int:
    servers = [server for server in pool.servers if server.node == node.name]
    on_cpu = sum(bool(_on_cpu(server)) for server in servers)
    return _NODE_HEADER + _gpus_height(node, servers) + on_cpu * _CPU_HEIGHT


def _gpus_height(node: Node, servers: Sequence[ServerPlan]) -> int:
    if not gpus_of(node):
        return 0
    return (_CAPTION + _GPU_HEIGHT if any(server.gpus for server in servers) else _IDLE_HEIGHT) + _GAP


def _idle_gpu(gpu: Gpu, left: int, top: int) -> Iterator[str]:
    yield box(left, top + 4, _GPU_WIDTH, _IDLE_HEIGHT, "free")
    yield text(left + 8, top + 20, f"{device_name(gpu.index)}: {gpu.withheld_by or 'free'}")


def _used_gpu(gpu: Gpu, server: ServerPlan, colours: Mapping[str, str], left: int, top: int) -> Iterator[str]:
    """Yield a GPU's caption and its memory, filled from below. Each model gets a label's height at least."""
    placements = [placement for placement in server.placements if gpu.index in placement.gpus]
    yield text(left, top + 16, f"{device_name(gpu.index)}, server {server.name}")
    yield text(left, top + 31, f"{gib(sum(p.memory for p in placements))} of {gib(gpu.memory)}", "small")
    yield text(left, top + 45, _compute(placements, gpu), "small")
    yield from _compute_bar(placements, gpu, left, top + _CAPTION - 7)
    bottom = top + _CAPTION + _GPU_HEIGHT
    yield box(left, top + _CAPTION, _GPU_WIDTH, _GPU_HEIGHT, "gpu")
    least = min(_LABEL_HEIGHT, _GPU_HEIGHT // max(len(placements), 1))
    for placement in placements:
        share = placement.memory / gpu.memory if gpu.memory else 0
        height = least + round((_GPU_HEIGHT - least * len(placements)) * share)
        bottom -= height
        yield box(left, bottom, _GPU_WIDTH, height, colour=colours[placement.model])
        yield text(left + 8, bottom + height // 2 + 4, f"{_named(placement)}: {gib(placement.memory)}")


def _compute(placements: Sequence[Placement], gpu: Gpu) -> str:
    if any(placement.exclusive for placement in placements):
        return "exclusive"
    of = f" of {percent(gpu.compute)}" if gpu.compute < FULL_COMPUTE else ""
    return f"compute {percent(sum(placement.compute for placement in placements))}{of}"


def _compute_bar(placements: Sequence[Placement], gpu: Gpu, left: int, top: int) -> Iterator[str]:
    """Yield a narrow bar, filled by the share of the device's compute that is taken."""
    full = any(placement.exclusive for placement in placements)
    used = gpu.compute if full else min(gpu.compute, sum(placement.compute for placement in placements))
    yield box(left, top, _GPU_WIDTH, _BAR_HEIGHT, "free")
    if used:
        yield box(left, top, max(1, _GPU_WIDTH * used // max(1, gpu.compute)), _BAR_HEIGHT, "used")


def _on_cpu(server: ServerPlan) -> list[Placement]:
    return [placement for placement in server.placements if not placement.gpus]


def _named(placement: Placement) -> str:
    return f"{placement.model} x{placement.instances}" if placement.instances > 1 else placement.model
