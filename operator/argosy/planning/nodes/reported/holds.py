"""A hold on nodes whose number of GPUs changes: what comes back within a minute moves nothing back and forth.

A device plugin takes a GPU from its count when a health check fails, and adds it again. For a while after a count fell,
servers keep the GPUs that they have, and no other one gets more than the lowest count. A further change begins the time
again, and a node whose count goes on changing says so (`Node.unsteady`). GPUs with device errors are not held.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from argosy.api.values.times import timestamp
from argosy.planning.facts import Device, Gpu, Node
from argosy.planning.nodes.slices import kind_of, resource_of

HOLD = timedelta(seconds=60)
"""As long as a node may be not ready before what it runs moves."""
_UNSTEADY = 4
"""Changes during one hold after which a node says so: a GPU that came back once, and then again."""
_HOLDER = "the node (the number of its GPUs changes)"
_CLOSED = "the node has reported fewer of these for less than a minute"
Kind = tuple[str, int]
"""A node, and the first index of a kind of its devices."""


@dataclass(frozen=True, slots=True)
class _Hold:
    """Devices of a kind as they were before their number fell; the lowest number since; when it is over. It began at
    `since`, and the number has changed so often, its fall then included.
    """

    gpus: tuple[Gpu, ...]
    least: int
    until: datetime
    since: datetime
    changes: int = 1

    def changed(self, kind: int) -> str:
        """Return how often the number has changed, as a clause: by powers of two, since each clause is a write of a
        status. Empty while it is no more than a GPU that came back.
        """
        if self.changes < _UNSTEADY:
            return ""
        often = 1 << (self.changes.bit_length() - 1)
        return (
            f"{resource_of(kind)} changed {often} times or more since {timestamp(self.since)}; {self.least} of "
            f"{len(self.gpus)} count until the number stays the same for a minute: see the log of its device plugin"
        )


@dataclass(frozen=True, slots=True)
class CountHolds:
    """The nodes as last seen, and the holds on kinds of their devices."""

    seen: Mapping[str, Node] = field(default_factory=dict)
    holds: Mapping[Kind, _Hold] = field(default_factory=dict)

    def after(self, nodes: Iterable[Node], now: datetime) -> "CountHolds":
        """Return the holds after these nodes are seen. Of a node whose devices are not known the earlier ones count."""
        reported = {node.name: node for node in nodes}
        seen = {name: self.seen.get(name, node) if node.stale else node for name, node in reported.items()}
        holds = {kind: hold for kind, hold in self.holds.items() if now < hold.until and kind[0] in seen}
        for name, node in seen.items():
            before = self.seen.get(name)
            if before is not None and before is not node:
                holds |= {(name, kind): hold for kind, hold in _changed(before, node, holds, now)}
        return CountHolds(seen, holds)

    def next_end(self, now: datetime) -> datetime | None:
        """Return when the next hold is over, if there is one."""
        return min((hold.until for hold in self.holds.values() if hold.until > now), default=None)

    def applied(
        self, nodes: Iterable[Node], assigned: Collection[Device], failing: Collection[Device]
    ) -> tuple[Node, ...]:
        """Return the nodes as servers count on them: with the devices that these have (`assigned`), and without those
        that came back a moment ago.
        """
        of_node: dict[str, dict[int, _Hold]] = {}
        for (name, kind), hold in self.holds.items():
            of_node.setdefault(name, {})[kind] = hold
        return tuple(
            _held(node, of_node[node.name], assigned, failing) if node.name in of_node else node for node in nodes
        )


def _changed(before: Node, now_seen: Node, holds: Mapping[Kind, _Hold], now: datetime) -> Iterator[tuple[int, _Hold]]:
    """Yield the holds on the kinds of a node whose number changed, where it fell or a hold is under way."""
    was, has = _by_kind(before), _by_kind(now_seen)
    for kind in was.keys() | has.keys():
        former, here = was.get(kind, ()), has.get(kind, ())
        hold = holds.get((now_seen.name, kind))
        if len(here) == len(former) or (hold is None and len(here) > len(former)):
            continue
        most = max((hold.gpus if hold else former), here, key=len)
        least = min(len(here), hold.least if hold else len(former))
        since, changes = (hold.since, hold.changes + 1) if hold else (now, 1)
        yield kind, _Hold(most, least, now + HOLD, since, changes)


def _by_kind(node: Node) -> dict[int, tuple[Gpu, ...]]:
    kinds: dict[int, tuple[Gpu, ...]] = {}
    for gpu in node.gpus:
        if not gpu.is_cpu and not gpu.withheld_by:
            kinds[kind_of(gpu.index)] = (*kinds.get(kind_of(gpu.index), ()), gpu)
    return kinds


def _held(node: Node, holds: Mapping[int, _Hold], assigned: Collection[Device], failing: Collection[Device]) -> Node:
    gpus = {gpu.index: gpu for gpu in node.gpus}
    for kind, hold in sorted(holds.items()):
        mine = {gpu.index for gpu in hold.gpus if (node.name, gpu.index) in assigned}
        if any((node.name, index) in failing for index in mine):
            continue
        gpus |= {gpu.index: replace(gpu, closed=_CLOSED) for gpu in hold.gpus if gpu.index in mine - gpus.keys()}
        free = [index for index in sorted(gpus) if kind_of(index) == kind and index not in mine]
        shut = [index for index in free if not gpus[index].is_cpu][max(0, hold.least - len(mine)) :]
        gpus |= {index: replace(gpus[index], withheld_by=gpus[index].withheld_by or _HOLDER) for index in shut}
    changed = "; ".join(filter(None, (hold.changed(kind) for kind, hold in sorted(holds.items()))))
    return replace(node, gpus=tuple(gpus[index] for index in sorted(gpus)), unsteady=changed)
