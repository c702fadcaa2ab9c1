"""What-if: the fleet with resources and nodes added and taken away. Pure."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches

from argosy.api.documents import KINDS, Resource
from argosy.cli.planning.fleet.files import FleetError
from argosy.local.manifests.checks import checked, local_shapes
from argosy.local.manifests.reading import Manifests
from argosy.planning.facts import Node
from argosy.planning.nodes.further import further_node
from argosy.planning.nodes.slices import is_slice
from argosy.snapshot import FleetSnapshot

_INSTANCE_TYPE = "node.kubernetes.io/instance-type"
_CHANGED = "with these changes"
"""The source, in messages, of a problem that they bring about in other resources."""
_MOST_ADDED = 10_000
"""Nodes that may be added for one plan, which takes seconds with so many."""
_KINDS = frozenset(kind.lower() for kind in KINDS)
_SIMILAR = 0.5
"""How similar a name has to be to be offered for one that is not there, from 0 to 1."""


NO_MANIFESTS = Manifests((), ())


@dataclass(frozen=True, slots=True)
class Changes:
    """What is tried. `add`: manifests, of which a resource that is there already takes its place. `remove`: names of
    resources. `with_nodes`: types of nodes, as `TYPE` or `TYPE=COUNT`, where a type is a GPU product, an instance type,
    or the name of a node to copy.
    """

    add: Manifests = NO_MANIFESTS
    remove: tuple[str, ...] = ()
    without_nodes: tuple[str, ...] = ()
    with_nodes: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether nothing is tried."""
        return not (self.add.resources or self.add.problems or self.remove or self.without_nodes or self.with_nodes)


@dataclass(frozen=True, slots=True)
class Changed:
    """A fleet with what is tried. `originals`: each node that it adds, with the node that it is a copy of."""

    snapshot: FleetSnapshot
    originals: Mapping[str, str] = field(default_factory=dict)


def changed(snapshot: FleetSnapshot, changes: Changes) -> Changed:
    """Return the fleet with these changes. Raises FleetError with all that is wrong with them."""
    if changes.is_empty:
        return Changed(snapshot)
    problems = [str(problem) for problem in changes.add.problems]
    removed = {identity for name in changes.remove for identity in _removed(snapshot.resources, name, problems)}
    added = {resource.identity: resource for resource in changes.add.resources}
    retained = {one.identity: one for one in snapshot.resources if one.identity not in removed}
    resources = tuple({**retained, **added}.values())
    added_nodes = [*_added(snapshot, changes, problems)]
    nodes = (*_without(snapshot.nodes, changes.without_nodes, problems), *(node for node, _ in added_nodes))
    if not problems:
        problems += _faults(snapshot, resources, changes.add)
    if problems:
        raise FleetError(problems)
    gone = {node.name for node in snapshot.nodes} - {node.name for node in nodes}
    pools = {
        key: replace(pool, servers=tuple(server for server in pool.servers if server.node not in gone))
        for key, pool in snapshot.pools.items()
    }
    shapes = {**snapshot.shapes, **local_shapes(changes.add.resources)}
    fleet = replace(snapshot, resources=resources, nodes=nodes, pools=pools, shapes=shapes)
    return Changed(fleet, {node.name: like for node, like in added_nodes})


def _faults(snapshot: FleetSnapshot, resources: Sequence[Resource], add: Manifests) -> list[str]:
    """Return the problems between resources that were not there before."""
    shapes = {**snapshot.shapes, **local_shapes(add.resources)}
    before = set(checked(Manifests(snapshot.resources, ()), snapshot.shapes).problems)
    after = checked(Manifests(tuple(resources), ()), shapes).problems
    return [str(replace(one, file=add.sources.get(one.resource, _CHANGED))) for one in after if one not in before]


def _removed(resources: Sequence[Resource], name: str, problems: list[str]) -> list[str]:
    """Return the identities of the resources that a name stands for."""
    matches: list[str] = [one.identity for one in resources if _folded(name) in map(_folded, _names(one))]
    if len(matches) > 1:
        example = matches[0].replace(" ", "/")
        problems.append(f"--remove {name}: is {' and '.join(matches)}; write one of them in full, as {example}")
    elif not matches:
        every = sorted({of for one in resources for of in _names(one)[:-1] if of.count("/") == name.count("/")})
        problems.append(f"--remove {name}: there is no such resource{nearest(name, every)}")
    return matches


def _names(resource: Resource) -> tuple[str, ...]:
    """Return the names by which a resource may be called."""
    name, full = resource.name, f"{resource.namespace}/{resource.name}"
    return name, full, f"{resource.kind}/{name}", f"{resource.kind}/{full}", resource.identity


def _folded(name: str) -> str:
    """Return a name with its kind, if any, in lower case: kubectl takes a kind in any case."""
    kind, slash, rest = name.partition("/")
    return f"{kind.lower()}/{rest}" if slash and kind.lower() in _KINDS else name


def _without(nodes: Sequence[Node], names: Sequence[str], problems: list[str]) -> list[Node]:
    existing = [node.name for node in nodes]
    problems += [
        f"--without-node {name}: there is no such node{nearest(name, existing)}"
        for name in names
        if name not in existing
    ]
    return [node for node in nodes if node.name not in names]


def _added(snapshot: FleetSnapshot, changes: Changes, problems: list[str]) -> Iterator[tuple[Node, str]]:
    """Yield the nodes to add, each with the name of that which it is like."""
    taken, left = {node.name for node in snapshot.nodes}, _MOST_ADDED
    for text in changes.with_nodes:
        kind, equals, number = text.partition("=")
        if equals and (not number.isdecimal() or not number.strip("0")):
            problems.append(f"--with-node {text}: {number!r} is no number of nodes; write for example {kind}=2")
            continue
        count = _MOST_ADDED + 1 if len(number.lstrip("0")) > len(str(_MOST_ADDED)) else int(number.lstrip("0") or 1)
        if count > left:
            problems.append(
                f"--with-node {kind}: a plan adds at most {_MOST_ADDED} nodes in all; write a smaller number"
            )
            continue
        left -= count
        model = _model(snapshot.nodes, kind, problems)
        if model is not None:
            names = (name for at in itertools.count(1) if (name := f"{kind.lower()}-new-{at}") not in taken)
            added = [further_node(model, name) for name in itertools.islice(names, count)]
            taken |= {node.name for node in added}
            yield from ((node, model.name) for node in added)


def _model(nodes: Sequence[Node], kind: str, problems: list[str]) -> Node | None:
    """Return the node that new ones of this type are like; None where that is not clear."""
    named = [node for node in nodes if node.name == kind]
    if named and named[0].stale:
        problems.append(f"--with-node {kind}: the devices of this node cannot be read; name another node to copy")
        return None
    readable = [node for node in nodes if not node.stale]
    alike = named or [node for node in readable if kind in (node.product, node.labels.get(_INSTANCE_TYPE))]
    if not alike:
        types = {node.product for node in nodes} | {node.labels.get(_INSTANCE_TYPE, "") for node in nodes}
        existing = [*sorted(types - {""}), *(node.name for node in nodes)]
        problems.append(
            f"--with-node {kind}: no node has this product, instance type or name{nearest(kind, existing)}. "
            "Add one to the nodes' file to plan with it"
        )
        return None
    kinds = {_devices(further_node(node, "")): node.name for node in reversed(alike)}
    if len(kinds) > 1:
        examples = ", ".join(sorted(kinds.values()))
        problems.append(f"--with-node {kind}: such nodes differ in their GPUs; name the node to copy: {examples}")
        return None
    return alike[0]


def _devices(node: Node) -> tuple[tuple[object, ...], ...]:
    """Return what the devices of a node are, by which nodes differ."""
    return tuple((gpu.memory, gpu.compute, gpu.is_cpu, is_slice(gpu.index), gpu.withheld_by) for gpu in node.gpus)


def nearest(name: str, existing: Sequence[str]) -> str:
    """Return a clause with the name that is most like one that is not there; empty if none is."""
    plain = {one.lower(): one for one in existing}
    near = get_close_matches(name.lower(), plain, 1, _SIMILAR)
    return f"; the nearest is {plain[near[0]]}" if near else ""
