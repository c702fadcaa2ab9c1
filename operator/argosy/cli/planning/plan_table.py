"""A plan as a person reads it: the models on each GPU, how full it is, free GPUs, and what fits nowhere."""

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from argosy.api.values.identity import PoolKey
from argosy.cli.planning.explanation.difference import difference_lines
from argosy.cli.planning.explanation.preempted import preempted_lines
from argosy.cli.planning.explanation.remedies import remedy_lines
from argosy.cli.planning.plan_document import gpus_total, gpus_unusable, gpus_withheld
from argosy.local.builds.rows import engine_of, models_of
from argosy.planning.amounts import gib, percent, quantity
from argosy.planning.builds.build import ScheduledBuild
from argosy.planning.explanation.difference import Difference
from argosy.planning.explanation.remedies.find import Remedies
from argosy.planning.facts import Gpu, Node, PoolFacts
from argosy.planning.nodes.device_names import named
from argosy.planning.nodes.reservations import devices
from argosy.planning.nodes.slices import is_slice
from argosy.planning.packing.capacity import FULL_COMPUTE, gpus_of
from argosy.planning.packing.lower_bound import fewest_gpus
from argosy.planning.plan import FleetPlan, Placement, PoolPlan, ServerPlan, Unplaced

_BAR = 10
_NAMES = 5
"""How many names of groups that fit nowhere for the same reason are listed."""
_REMEDIES = 4
"""How many changes are listed that would give them a place."""


def plan_table(
    plan: FleetPlan,
    facts: Sequence[PoolFacts],
    builds: Sequence[ScheduledBuild] = (),
    advice: Mapping[str, str] | None = None,
    changes: Difference | None = None,
    remedies: Remedies | None = None,
) -> RenderableType:
    """Return a table for each pool, the totals, what fits nowhere, what lost its place to what, the engines to build
    first, advice by resource, and what changes of what runs.
    """
    by_pool = {of_pool.pool: of_pool for of_pool in facts}
    used = devices(server for pool in plan.pools for server in pool.servers)
    tables = [_pool_table(pool, by_pool[pool.pool], used) for pool in plan.pools]
    unplaced = (Text(line, style="red") for line in (*unplaced_lines(plan, remedies), *preempted_lines(plan)))
    advices = (Text(f"{name}: {message}", style="yellow") for name, message in (advice or {}).items())
    changed = (Text(line) for line in (difference_lines(changes) if changes is not None else ()))
    return Group(*tables, _totals(plan, facts), *unplaced, *map(_build, builds), *advices, *changed)


def unplaced_lines(plan: FleetPlan, remedies: Remedies | None = None) -> list[str]:
    """Return a line for each reason why something fits nowhere, with the groups that it holds for, and lines with what
    would give them a place.
    """
    equal: dict[tuple[str, str], list[tuple[PoolKey, Unplaced]]] = {}
    for pool in plan.pools:
        for unplaced in pool.unplaced:
            equal.setdefault((str(unplaced.reason), _general(unplaced)), []).append((pool.pool, unplaced))
    lines = list[str]()
    for (reason, general), entries in equal.items():
        lines.append(_line(reason, general, [unplaced for _, unplaced in entries]))
        keys = [(pool_key, unplaced.group) for pool_key, unplaced in entries]
        lines += remedy_lines(remedies or {}, keys, _REMEDIES)
    return lines


def _general(unplaced: Unplaced) -> str:
    """Return the message without its replica's number, and with "each" for the name of the group or its only model."""
    names = {unplaced.group, *(unplaced.models if len(unplaced.models) == 1 else ())}
    pattern = rf"(?<![\w./-])(?:replica \d+ of )?(?:{'|'.join(map(re.escape, names))})(?![\w./-])"
    return re.sub(pattern, "each", unplaced.message)


def _line(reason: str, general: str, unplaced: Sequence[Unplaced]) -> str:
    replicas = Counter(replica.group for replica in unplaced)
    names = [f"{name} x{number}" if number > 1 else name for name, number in replicas.items()]
    if len(names) == 1:
        return f"{names[0]} fits nowhere ({reason}): {unplaced[0].message}"
    if len(names) > _NAMES:
        names[_NAMES:] = [f"{len(names) - _NAMES} more"]
    return f"{', '.join(names[:-1])} and {names[-1]} fit nowhere ({reason}): {general}"


def _build(build: ScheduledBuild) -> Text:
    gpus = f", on {quantity(build.request.gpus, 'GPU')}" if build.request.gpus else ""
    return Text(f"To be built first: {engine_of(build.request)} for {models_of(build.owners)}{gpus}")


def bar(used: int, total: int) -> str:
    """Return ten cells, filled by the share `used` of `total`; any use fills at least one."""
    filled = min(_BAR, -(-used * _BAR // total)) if total else 0
    return "█" * filled + "░" * (_BAR - filled)


def _pool_table(pool: PoolPlan, facts: PoolFacts, used: Collection[tuple[str, int]]) -> Table:
    table = Table(title=f"Pool {pool.pool}", title_justify="left", expand=False)
    for heading in ("Server", "Node", "Device", "Memory", "Compute", "Models"):
        table.add_column(heading, overflow="fold", no_wrap=heading in ("Memory", "Compute"))
    nodes = {node.name: node for node in facts.nodes}
    for server in pool.servers:
        for row in _server_rows(server, nodes[server.node]):
            table.add_row(*row)
        table.add_section()
    for node, free in _free(facts, used):
        table.add_row("", node, free, "", "", "", style="dim")
    return table


def _server_rows(server: ServerPlan, node: Node) -> Iterator[tuple[str, ...]]:
    on_cpu = [placement for placement in server.placements if not placement.gpus]
    for gpu in gpus_of(node):
        if gpu.index in server.gpus:
            here = [placement for placement in server.placements if gpu.index in placement.gpus]
            yield (
                server.name,
                server.node,
                named(gpu),
                _memory(sum(p.memory + p.surge for p in here), gpu.memory),
                _compute(here, gpu),
                ", ".join(map(_label, here)) or "idle",
            )
    if on_cpu or not server.gpus:
        slot = sum(gpu.memory for gpu in node.gpus if gpu.is_cpu)
        memory = _memory(sum(p.memory + p.surge for p in on_cpu), slot) if slot else ""
        yield server.name, server.node, "CPU", memory, "", ", ".join(map(_label, on_cpu)) or "idle"


def _memory(used: int, total: int) -> str:
    return f"{bar(used, total)} {gib(used)} of {gib(total)}"


def _compute(here: Sequence[Placement], gpu: Gpu) -> str:
    if any(placement.exclusive for placement in here):
        return f"{bar(1, 1)} whole"
    used = sum(placement.compute for placement in here)
    of = f" of {percent(gpu.compute)}" if gpu.compute < FULL_COMPUTE else ""
    return f"{bar(used, gpu.compute)} {percent(used)}{of}"


def model_label(placement: Placement) -> str:
    """Return a model with its instances, of several: `chat x2`."""
    return f"{placement.model} x{placement.instances}" if placement.instances > 1 else placement.model


def _label(placement: Placement) -> str:
    return model_label(placement) + (f" (+ {gib(placement.surge)} for its rollout)" if placement.surge else "")


def _free(facts: PoolFacts, used: Collection[tuple[str, int]]) -> Iterator[tuple[str, str]]:
    """Yield each node with what no pool uses of it, of which slices are counted apart from whole GPUs."""
    for node in facts.nodes:
        free = [gpu.index for gpu in gpus_of(node) if not gpu.withheld_by and (node.name, gpu.index) not in used]
        slices = sum(map(is_slice, free))
        counts = [(len(free) - slices, "GPU"), (slices, "slice")]
        if texts := [f"{quantity(count, noun)} free" for count, noun in counts if count]:
            yield node.name, ", ".join(texts)


def _gap(gpus: int) -> str:
    return f": at most {quantity(gpus, 'GPU')} could be spared" if gpus > 0 else ""


def _totals(plan: FleetPlan, facts: Sequence[PoolFacts]) -> Text:
    total, withheld, unusable = gpus_total(facts), gpus_withheld(facts), gpus_unusable(facts)
    apart, bound = plan.gpus_one_per_model, fewest_gpus(plan, facts)
    text = Text(f"\n{quantity(plan.gpus_used, 'GPU')} used", style="bold")
    others = f", {withheld - unusable} held by others" if withheld > unusable else ""
    others += f", {unusable} that cannot be used" if unusable else ""
    text.append(f", {total - plan.gpus_used - withheld} of {total} free{others}. ", style="not bold")
    one = "Of what has a place, one" if any(pool.unplaced for pool in plan.pools) else "One"
    text.append(f"{one} model per GPU would take {apart}. ", style="not bold")
    why = ", since each replica of an ensemble has all of its models" if bound > apart else ""
    text.append(f"No plan takes fewer than {bound}{why}{_gap(plan.gpus_used - bound)}.\n", style="not bold")
    return text
