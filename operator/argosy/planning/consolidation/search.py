"""The search for steps: the server that is emptied for the fewest bytes per GPU that comes free, one after another."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import islice

from argosy.planning.consolidation.closeness import puts_closer
from argosy.planning.consolidation.fleet import RunningFleet
from argosy.planning.consolidation.moves import Step, carried_out
from argosy.planning.consolidation.relocation import Relocation
from argosy.planning.consolidation.stepping import Slots, moves_of, perform
from argosy.planning.facts import PoolFacts
from argosy.planning.packing.capacity import FULL_COMPUTE

_STEPS = 16
"""Steps that are searched for together: what is recommended at once."""
_SERVERS = 48
"""Servers that are tried for one step, the cheapest first."""
_MOST_OF_GPU = 750
"""Thousandths of a GPU's memory that are moved for a GPU: more than that and it is soon cheaper to wait."""
_PLACINGS = 600
"""Places that are looked for to empty one server."""


@dataclass(frozen=True, slots=True)
class StepLimits:
    """The most bytes and moves of one step. `recent`: replicas that stay, by group and server, because they were moved
    a short time ago; `staying`: groups that stay because a move of theirs failed.
    """

    bytes: int
    moves: int
    recent: frozenset[tuple[str, str]] = frozenset()
    staying: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class _Result:
    """A step, and where the items that it moves are then."""

    step: Step
    after: Slots


def find_steps(facts: PoolFacts, fixed_groups: Collection[str], limits: StepLimits) -> tuple[Step, ...]:
    """Return steps one after another, each the cheapest per GPU once those before it are done.

    `fixed_groups` stay, and no replica is moved twice. Empty where nothing can come free. The result depends
    on the facts alone.
    """
    return tuple(islice(_steps(facts, fixed_groups, limits), _STEPS))


def _steps(facts: PoolFacts, fixed_groups: Collection[str], limits: StepLimits) -> Iterator[Step]:
    recent, fixed = limits.recent, limits.staying.union(fixed_groups)
    while (fleet := RunningFleet.of(facts, fixed, recent)) is not None:
        done = list[Step]()
        while step := _cheapest(fleet, limits, may_open=False):
            done.append(step)
            yield step
        if not done:
            opening = _cheapest(fleet, limits, may_open=True) if facts.max_servers is None and fleet.free else None
            if opening is None:
                return
            done.append(opening)
            yield opening
        for step in done:
            facts = carried_out(facts, step)
            recent |= {(move.group, move.target) for move in step.moves}


def _cheapest(fleet: RunningFleet, limits: StepLimits, *, may_open: bool) -> Step | None:
    """Return the step with the fewest bytes per GPU, carried out in the fleet. `may_open`: moves may take free GPUs
    where that makes larger slots.
    """
    best: _Result | None = None
    able = _candidates(fleet, may_open) if len(fleet.gpus) > fleet.facts.min_servers else ()
    for server, gain in able:
        most = min(limits.bytes, _worth(fleet, gain))
        if best is not None:
            most = min(most, best.step.bytes * gain // best.step.gain - 1)
        if fleet.load(server) > most:
            continue
        best = _emptied(fleet, server, StepLimits(most, limits.moves), may_open) or best
    if best is None:
        return None
    perform(fleet, best.step.server, best.step.moves, best.after)
    return best.step


def _worth(fleet: RunningFleet, gain: int) -> int:
    """Return the most bytes that are moved for so many GPUs."""
    return fleet.state.devices.largest * gain * _MOST_OF_GPU // FULL_COMPUTE


def _candidates(fleet: RunningFleet, may_open: bool) -> Iterator[tuple[str, int]]:
    """Yield servers that may be emptied, with the GPUs that come free at most: the fewest bytes for each of them first.

    Where free GPUs are taken, only those of whose node a larger slot comes free.
    """
    before = fleet.free_gpus()
    able: list[tuple[float, str, int]] = []
    for server, gpus in fleet.gpus.items():
        if gpus and fleet.may_empty(server):
            after = fleet.free_gpus(more=gpus)
            gain = after.gain(before) if not may_open or after.in_slots > before.in_slots else 0
            if gain:
                able.append((fleet.load(server) / gain, server, gain))
    for _, server, gain in sorted(able)[:_SERVERS]:
        yield server, gain


def _emptied(fleet: RunningFleet, server: str, limits: StepLimits, may_open: bool) -> _Result | None:
    """Return the step that empties a server; None where its replicas find no other place, or where it only makes larger
    slots and puts replicas closer together: as in a plan, replicas apart count more than slots, and less than GPUs.
    """
    relocation = Relocation(fleet, limits.bytes, _PLACINGS, may_open=may_open)
    if not relocation.empty(server):
        return None
    moved = relocation.moved
    moves, slots = moves_of(fleet, server, moved), {number: fleet.state.slots[number] for number in moved}
    relocation.take_back()
    opened = {gpu for of_item in slots.values() for gpus in of_item for gpu in gpus} & fleet.free
    before, after = fleet.free_gpus(), fleet.free_gpus(more=fleet.gpus[server], fewer=opened)
    if moves is None or len(moves) > limits.moves or after <= before:
        return None
    freed = len(fleet.gpus[server]) - len(opened)
    if freed <= 0 and puts_closer(fleet, moves):
        return None
    return _Result(Step(server, fleet.hosts[server], freed, moves, after.gain(before)), slots)
