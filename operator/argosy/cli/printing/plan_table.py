"""A plan as a person reads it: what sits on which GPU, how full each is, what is left, and what fits nowhere."""

from collections.abc import Iterator, Mapping, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from argosy.cli.printing.plan_document import gpus_total, gpus_withheld
from argosy.local.builds.rows import engine_of, models_of
from argosy.planning.amounts import counted, gib, percent
from argosy.planning.builds.plan import PlannedBuild
from argosy.planning.facts import Node, PoolFacts
from argosy.planning.packing.capacity import FULL_COMPUTE, gpus_of
from argosy.planning.packing.lower_bound import fewest_gpus
from argosy.planning.plan import FleetPlan, Placement, PoolPlan, ServerPlan

_BAR = 10


def plan_table(
    plan: FleetPlan,
    facts: Sequence[PoolFacts],
    builds: Sequence[PlannedBuild] = (),
    advice: Mapping[str, str] | None = None,
) -> RenderableType:
    """Return a table for each pool, the totals, what fits nowhere, the engines that it takes, the advice for each
    resource.
    """
    by_pool = {each.pool: each for each in facts}
    tables = [_pool_table(pool, by_pool[pool.pool]) for pool in plan.pools]
    said = (Text(f"{name}: {message}", style="yellow") for name, message in (advice or {}).items())
    return Group(*tables, _totals(plan, facts), *_unplaced(plan), *map(_build, builds), *said)


def _build(build: PlannedBuild) -> Text:
    gpus = f", on {counted(build.request.gpus, 'GPU')}" if build.request.gpus else ""
    return Text(f"To be built first: {engine_of(build.request)} for {models_of(build.owners)}{gpus}")


def bar(used: int, whole: int) -> str:
    """Ten cells, filled by `used` of `whole`; anything above nothing shows."""
    filled = min(_BAR, -(-used * _BAR // whole)) if whole else 0
    return "█" * filled + "░" * (_BAR - filled)


def _pool_table(pool: PoolPlan, facts: PoolFacts) -> Table:
    table = Table(title=f"Pool {pool.pool}", title_justify="left", expand=False)
    for heading in ("Server", "Node", "Device", "Memory", "Compute", "Models"):
        table.add_column(heading, overflow="fold", no_wrap=heading in ("Memory", "Compute"))
    nodes = {node.name: node for node in facts.nodes}
    for server in pool.servers:
        for row in _server_rows(server, nodes[server.node]):
            table.add_row(*row)
        table.add_section()
    for node, free in _free(pool, facts):
        table.add_row("", node, f"{counted(free, 'GPU')} free", "", "", "", style="dim")
    return table


def _server_rows(server: ServerPlan, node: Node) -> Iterator[tuple[str, ...]]:
    on_cpu = [placement for placement in server.placements if not placement.gpus]
    for gpu in gpus_of(node):
        if gpu.index in server.gpus:
            here = [placement for placement in server.placements if gpu.index in placement.gpus]
            yield (
                server.name,
                server.node,
                f"GPU {gpu.index}",
                _memory(sum(p.memory for p in here), gpu.memory),
                _compute(here),
                ", ".join(map(_named, here)) or "idle",
            )
    if on_cpu or not server.gpus:
        slot = sum(gpu.memory for gpu in node.gpus if gpu.is_cpu)
        memory = _memory(sum(p.memory for p in on_cpu), slot) if slot else ""
        yield server.name, server.node, "CPU", memory, "", ", ".join(map(_named, on_cpu)) or "idle"


def _memory(used: int, whole: int) -> str:
    return f"{bar(used, whole)} {gib(used)} of {gib(whole)}"


def _compute(here: Sequence[Placement]) -> str:
    if any(placement.whole for placement in here):
        return f"{bar(1, 1)} whole"
    used = sum(placement.compute for placement in here)
    return f"{bar(used, FULL_COMPUTE)} {percent(used)}"


def _named(placement: Placement) -> str:
    times = f" x{placement.instances}" if placement.instances > 1 else ""
    return f"{placement.model}{times}"


def _free(pool: PoolPlan, facts: PoolFacts) -> Iterator[tuple[str, int]]:
    held = {node.name: 0 for node in facts.nodes}
    for server in pool.servers:
        held[server.node] += len(server.gpus)
    for node in facts.nodes:
        free = sum(not gpu.withheld_by for gpu in gpus_of(node)) - held[node.name]
        if free:
            yield node.name, free


def _totals(plan: FleetPlan, facts: Sequence[PoolFacts]) -> Text:
    total, withheld = gpus_total(facts), gpus_withheld(facts)
    apart, bound = plan.gpus_one_per_model, fewest_gpus(plan, facts)
    text = Text(f"\n{counted(plan.gpus_used, 'GPU')} used", style="bold")
    others = f", {withheld} held by others" if withheld else ""
    text.append(f", {total - plan.gpus_used - withheld} of {total} free{others}. ", style="not bold")
    if any(pool.unplaced for pool in plan.pools):
        text.append("Of what has a place: ", style="not bold")
    text.append(f"One model per GPU would take {apart}. ", style="not bold")
    why = ", since each replica of an ensemble has all of its models" if bound > apart else ""
    text.append(f"No plan takes fewer than {bound}{why}.\n", style="not bold")
    return text


def _unplaced(plan: FleetPlan) -> Iterator[Text]:
    for pool in plan.pools:
        for each in pool.unplaced:
            yield Text(f"{each.group} fits nowhere ({each.reason}): {each.message}", style="red")
