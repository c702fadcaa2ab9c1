"""Assignments of a group's models to the GPUs of one server: every one that differs, the likely best first."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, groupby

from argosy.planning.facts import Demand, Footprint, Node
from argosy.planning.nodes.slices import is_slice
from argosy.planning.packing.capacity import FreeCapacity, link_group
from argosy.planning.packing.layout import Assignment

_STEPS = 5000


@dataclass(slots=True)
class Budget:
    """Steps that a search may still take: the answer never depends on how fast the machine is."""

    left: int

    def spend(self) -> bool:
        """Take one step; False when there is none left."""
        self.left -= 1
        return self.left >= 0

    def part(self, most: int) -> "Budget":
        """Set aside at most `most` of the steps, to be given back with `back`."""
        taken = max(0, min(most, self.left))
        self.left -= taken
        return Budget(taken)

    def back(self, part: "Budget") -> None:
        """Take back what `part` did not use."""
        self.left += max(0, part.left)


@dataclass(frozen=True, slots=True)
class Site:
    """One server, or the place for a new one, as a group sees it.

    `free` has every GPU in reach; `server_gpus` are those the server has, and of the others it may take `growth`.
    `cpu` is None where real GPUs serve, else what is left in the CPU devices that stand in for them. `busy`
    are GPUs that servers have now: of GPUs that are alike, others come first.
    """

    node: Node
    free: Mapping[int, FreeCapacity]
    server_gpus: frozenset[int]
    growth: int
    cpu: FreeCapacity | None = None
    busy: frozenset[int] = frozenset()


def hardness(need: Footprint) -> tuple[int, int, int]:
    """Sort key of a footprint: whole GPUs first, then the most memory, then the most compute."""
    return (-need.gpus, -need.memory, -need.compute)


def assignments(
    site: Site, demands: Sequence[Demand], preferred: Mapping[str, tuple[int, ...]]
) -> Iterator[Assignment]:
    """Yield every way (up to interchangeable GPUs) to give `demands` GPUs at `site`.

    Those in `preferred` (by model) are tried first.
    """
    order = sorted(range(len(demands)), key=lambda i: (hardness(demands[i].footprint), demands[i].model))
    if site.cpu is not None:
        if _runs_on_cpus(site.cpu, demands):
            yield ((),) * len(demands)
        return
    if not _could_hold(site, demands):
        return
    needs = [(demands[i].footprint, preferred.get(demands[i].model)) for i in order]
    for chosen in _assign(site, needs, site.free, site.server_gpus, Budget(_STEPS)):
        by_demand = dict(zip(order, chosen, strict=True))
        yield tuple(by_demand[i] for i in range(len(demands)))


def _runs_on_cpus(left: FreeCapacity, demands: Sequence[Demand]) -> bool:
    needs = [demand.footprint for demand in demands]
    both = sum(need.surged for need in needs) <= left.memory + left.headroom
    return both and all(need.gpus <= 1 for need in needs) and sum(need.settled for need in needs) <= left.memory


def _could_hold(site: Site, demands: Sequence[Demand]) -> bool:
    """Return whether the capacity in reach is enough by volume: a quick no for most of what does not fit."""
    shared = [one for demand in demands if not (one := demand.footprint).exclusive for _ in range(one.shares)]
    memory = sum(capacity.memory for capacity in site.free.values())
    compute = sum(capacity.compute for capacity in site.free.values())
    return sum(need.memory for need in shared) <= memory and sum(need.compute for need in shared) <= compute


def _assign(
    site: Site,
    needs: Sequence[tuple[Footprint, tuple[int, ...] | None]],
    free: Mapping[int, FreeCapacity],
    running: frozenset[int],
    budget: Budget,
) -> Iterator[Assignment]:
    if not needs:
        yield ()
        return
    need, preferred = needs[0]
    for gpus in _options(site, need, free, running, preferred):
        grown = running | set(gpus)
        if len(grown) - len(site.server_gpus) > site.growth or (len(grown) > 1 and any(map(is_slice, grown))):
            continue
        if not budget.spend():
            return
        after = {**free, **{gpu: free[gpu].less(need) for gpu in gpus}}
        for rest in _assign(site, needs[1:], after, grown, budget):
            yield (gpus, *rest)


def _options(
    site: Site,
    need: Footprint,
    free: Mapping[int, FreeCapacity],
    running: frozenset[int],
    preferred: tuple[int, ...] | None,
) -> Iterator[tuple[int, ...]]:
    if need.on_cpu:
        yield ()
        return
    kind = _exclusive if need.exclusive else _shared if need.shares == 1 else _several
    options = kind(site, need, free, running)
    if preferred is not None and may_take(site.node, need, free, preferred):
        yield preferred
        options = (gpus for gpus in options if gpus != preferred)
    yield from options


def may_take(node: Node, need: Footprint, free: Mapping[int, FreeCapacity], gpus: tuple[int, ...]) -> bool:
    """Return whether exactly these GPUs can take `need`."""
    if any(gpu not in free for gpu in gpus):
        return False
    if not need.exclusive:
        count = 0 if need.on_cpu else need.shares
        return len(set(gpus)) == len(gpus) == count and all(free[gpu].takes(need) for gpu in gpus)
    joined = len(gpus) == 1 or any(set(gpus) <= group for group in node.nvlink)
    return len(set(gpus)) == need.gpus and joined and all(_can_take_alone(free[gpu], need) for gpu in gpus)


def _can_take_alone(left: FreeCapacity, need: Footprint) -> bool:
    return left.empty and left.takes(need)


def _shared(
    site: Site, need: Footprint, free: Mapping[int, FreeCapacity], running: frozenset[int]
) -> Iterator[tuple[int, ...]]:
    """Yield single GPUs: those that the server has, the tightest first; else a free one of each kind, the smallest and
    least joined first.
    """
    fits = [gpu for gpu, left in free.items() if left.takes(need)]
    seen: set[FreeCapacity] = set()
    for gpu in sorted((g for g in fits if g in running), key=lambda g: (free[g].memory, free[g].compute, g)):
        if free[gpu] not in seen:
            yield (gpu,)
        if not free[gpu].empty:
            seen.add(free[gpu])  # another that is as full is as good
    for alike in _kinds(site, free, [gpu for gpu in fits if gpu not in running], running):
        yield (alike[0],)


def _several(
    site: Site, need: Footprint, free: Mapping[int, FreeCapacity], running: frozenset[int]
) -> Iterator[tuple[int, ...]]:
    """Yield sets of GPUs that each have a part of a model's instances: those that the server has first, the tightest
    first.
    """
    fits = [gpu for gpu, left in free.items() if left.takes(need)]
    fits.sort(key=lambda gpu: (gpu not in running, gpu in site.busy, free[gpu].memory, free[gpu].compute, gpu))
    yield from (tuple(sorted(chosen)) for chosen in combinations(fits, need.shares))


def _exclusive(
    site: Site, need: Footprint, free: Mapping[int, FreeCapacity], running: frozenset[int]
) -> Iterator[tuple[int, ...]]:
    """Yield sets of `need.gpus` empty GPUs, joined by NVLink where there are several; the set with the fewest to spare
    first.
    """
    able = [gpu for gpu in sorted(free) if _can_take_alone(free[gpu], need)]
    if need.gpus == 1:
        for alike in _kinds(site, free, able, running):
            yield (alike[0],)
        return
    joined = [[gpu for gpu in able if gpu in group] for group in site.node.nvlink]
    for group in sorted((g for g in joined if len(g) >= need.gpus), key=lambda g: (len(g), g)):
        for pick in _picks(_kinds(site, free, group, running), need.gpus):
            yield tuple(sorted(pick))


def _kinds(
    site: Site, free: Mapping[int, FreeCapacity], gpus: Sequence[int], running: frozenset[int]
) -> list[list[int]]:
    """Return `gpus` in classes of interchangeable ones: those that the server has, then the smallest, then those with
    the fewest free peers.
    """
    peers: dict[int, int] = {}
    for gpu in gpus:
        group = link_group(site.node, gpu)
        peers[group] = peers.get(group, 0) + 1 if group >= 0 else 0

    def kind(gpu: int) -> tuple[bool, int, int, int]:
        group = link_group(site.node, gpu)
        return (gpu not in running, free[gpu].memory, peers[group], group)

    ordered = sorted(gpus, key=lambda gpu: (kind(gpu), gpu in site.busy, gpu))
    return [list(alike) for _, alike in groupby(ordered, key=kind)]


def _picks(kinds: Sequence[Sequence[int]], count: int) -> Iterator[tuple[int, ...]]:
    """Yield ways to take `count` GPUs from the classes, as many as possible of the first class first."""
    if count == 0:
        yield ()
        return
    if not kinds:
        return
    for taken in range(min(count, len(kinds[0])), -1, -1):
        for rest in _picks(kinds[1:], count - taken):
            yield (*kinds[0][:taken], *rest)
