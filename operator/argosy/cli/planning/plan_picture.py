"""A plan as a picture (SVG): each node's GPUs, filled by the memory that models take."""

from collections.abc import Iterator, Mapping, Sequence
from html import escape

from argosy.planning.amounts import gib, percent, quantity
from argosy.planning.facts import Gpu, Node, PoolFacts
from argosy.planning.packing.capacity import gpus_of
from argosy.planning.packing.lower_bound import fewest_gpus
from argosy.planning.plan import FleetPlan, Placement, PoolPlan, ServerPlan

# Lengths are in pixels.
_MARGIN, _GAP = 20, 12
_GPU_WIDTH, _GPU_HEIGHT, _IDLE_HEIGHT, _CAPTION = 170, 120, 24, 52
_NODE_HEADER, _CPU_HEIGHT, _LABEL_HEIGHT = 26, 28, 18
# Okabe and Ito's palette, which colour-blind readers can tell apart.
_COLOURS = ("#56b4e9", "#e69f00", "#009e73", "#cc79a7", "#f0e442", "#d55e00", "#0072b2")
_STYLE = (
    "text{font:12px system-ui,sans-serif;fill:#1f2328}"
    ".title{font-size:15px;font-weight:600}.small{font-size:11px;fill:#57606a}"
    ".node{fill:#f6f8fa;stroke:#d0d7de}.gpu{fill:#fff;stroke:#8c959f}.free{fill:#eaeef2;stroke:#d0d7de}"
)


def plan_picture(plan: FleetPlan, facts: Sequence[PoolFacts]) -> str:
    """Return the plan as an SVG document: a row for each node, a column for each of its GPUs."""
    by_pool = {pool_facts.pool: pool_facts for pool_facts in facts}
    models = [p.model for pool in plan.pools for server in pool.servers for p in server.placements]
    colours = {model: _COLOURS[i % len(_COLOURS)] for i, model in enumerate(dict.fromkeys(models))}
    gpus = max((len(gpus_of(node)) for pool_facts in facts for node in pool_facts.nodes), default=0)
    width = 2 * _MARGIN + _GAP + max(gpus, 2) * (_GPU_WIDTH + _GAP)
    top = _MARGIN
    parts = [_text(_MARGIN, top + 14, _summary(plan, facts), "title")]
    top += 30
    for pool in plan.pools:
        parts.append(_text(_MARGIN, top + 12, f"Pool {pool.pool}"))
        top += 22
        for node in by_pool[pool.pool].nodes:
            parts += _node(node, pool, colours, top, width - 2 * _MARGIN)
            top += _node_height(node, pool) + _GAP
    return _document(width, top + _MARGIN - _GAP, parts)


def _summary(plan: FleetPlan, facts: Sequence[PoolFacts]) -> str:
    totals = f"{quantity(plan.gpus_used, 'GPU')} used; one model per GPU would take {plan.gpus_one_per_model}; "
    unplaced = sum(len(pool.unplaced) for pool in plan.pools)
    return totals + f"lower bound {fewest_gpus(plan, facts)}" + (f"; {unplaced} unplaced" if unplaced else "")


def _document(width: int, height: int, parts: Sequence[str]) -> str:
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">'
    background = f'<rect width="{width}" height="{height}" rx="6" fill="#fff"/>'
    return "\n".join([head, f"<style>{_STYLE}</style>", background, *parts, "</svg>", ""])


def _node(node: Node, pool: PoolPlan, colours: Mapping[str, str], top: int, width: int) -> Iterator[str]:
    servers = [server for server in pool.servers if server.node == node.name]
    yield _box(_MARGIN, top, width, _node_height(node, pool), "node")
    yield _text(_MARGIN + _GAP, top + 20, f"{node.name}  {node.product}".rstrip())
    left, below = _MARGIN + _GAP, top + _NODE_HEADER
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
            yield _text(_MARGIN + _GAP, below + 16, f"CPU, server {server.name}: {models}")
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
    yield _box(left, top + 4, _GPU_WIDTH, _IDLE_HEIGHT, "free")
    yield _text(left + 8, top + 20, f"GPU {gpu.index}: {gpu.withheld_by or 'free'}")


def _used_gpu(gpu: Gpu, server: ServerPlan, colours: Mapping[str, str], left: int, top: int) -> Iterator[str]:
    """Yield a GPU's caption and its memory, filled from below. Each model gets a label's height at least."""
    placements = [placement for placement in server.placements if gpu.index in placement.gpus]
    yield _text(left, top + 16, f"GPU {gpu.index}, server {server.name}")
    yield _text(left, top + 31, f"{gib(sum(p.memory for p in placements))} of {gib(gpu.memory)}", "small")
    yield _text(left, top + 45, _compute(placements), "small")
    bottom = top + _CAPTION + _GPU_HEIGHT
    yield _box(left, top + _CAPTION, _GPU_WIDTH, _GPU_HEIGHT, "gpu")
    least = min(_LABEL_HEIGHT, _GPU_HEIGHT // max(len(placements), 1))
    for placement in placements:
        share = placement.memory / gpu.memory if gpu.memory else 0
        height = least + round((_GPU_HEIGHT - least * len(placements)) * share)
        bottom -= height
        yield _box(left, bottom, _GPU_WIDTH, height, colour=colours[placement.model])
        yield _text(left + 8, bottom + height // 2 + 4, f"{_named(placement)}: {gib(placement.memory)}")


def _compute(placements: Sequence[Placement]) -> str:
    if any(placement.exclusive for placement in placements):
        return "exclusive"
    return f"compute {percent(sum(placement.compute for placement in placements))}"


def _on_cpu(server: ServerPlan) -> list[Placement]:
    return [placement for placement in server.placements if not placement.gpus]


def _named(placement: Placement) -> str:
    return f"{placement.model} x{placement.instances}" if placement.instances > 1 else placement.model


def _text(x: int, y: int, text: str, style: str = "") -> str:
    attribute = f' class="{style}"' if style else ""
    return f'<text x="{x}" y="{y}"{attribute}>{escape(text)}</text>'


def _box(x: int, y: int, width: int, height: int, style: str = "", colour: str = "") -> str:
    look = f'class="{style}"' if style else f'fill="{colour}"'
    return f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="3" {look}/>'
