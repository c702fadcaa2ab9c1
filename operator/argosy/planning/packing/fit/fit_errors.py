"""Fit errors of a replica: the first rule that stops it everywhere, the numbers, the nearest miss, the way out."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from argosy.api import Reason
from argosy.planning.amounts import quantity
from argosy.planning.packing.equivalence import Shape, explained_shape
from argosy.planning.packing.eviction.preemptible import Preemptible
from argosy.planning.packing.fit.documents import config_too_large, no_config_space
from argosy.planning.packing.fit.fit_limits import Diagnosis
from argosy.planning.packing.fit.occupied import occupied
from argosy.planning.packing.fit.outranked import Outranked
from argosy.planning.packing.fit.presence import all_left, architectures, engines, no_gpus, no_nodes
from argosy.planning.packing.fit.separated import in_the_way
from argosy.planning.packing.fit.servers import apart, server_limit, too_large, withheld
from argosy.planning.packing.fit.spread import too_close
from argosy.planning.packing.fit.unmatched import matching, no_match, of_matching
from argosy.planning.packing.fit.view import FitView
from argosy.planning.packing.layout import Layout, Replica


@dataclass(frozen=True, slots=True)
class FitErrors:
    """What a pool's unschedulable replicas are explained by."""

    view: FitView
    outranked: Outranked
    preemptible: Preemptible
    cache: dict[Shape, Diagnosis] = field(default_factory=dict)

    @classmethod
    def of(cls, layout: Layout) -> "FitErrors":
        """Return the errors of all that does not fit into `layout`."""
        return cls(FitView.of(layout), Outranked(layout), Preemptible(layout))

    def explain(self, replica: Replica) -> Diagnosis:
        """Return why `replica` is unschedulable, and what has its capacity. The first rule that applies answers.

        Equivalent replicas are explained once, under names that nothing has, in whose place each one's own are put.
        """
        key, names = explained_shape(replica), _names(replica)
        if key not in self.cache:
            named = replica.group.replicas > 1 or replica.group.spread_required
            anonymous = replica if named else _renamed(replica, names)
            why = diagnose(self.view, anonymous)
            message = f"{self.outranked.words(anonymous)}{why.message}{self.preemptible.words(anonymous)}"
            self.cache[key] = replace(why, message=message)
        message = self.cache[key].message
        for own, stand_in in names.items():
            message = message.replace(stand_in, own[1])
        return replace(self.cache[key], message=message)


def _names(replica: Replica) -> dict[tuple[str, str], str]:
    """Return stand-ins for the names of a group and of its models, in the order of these."""
    models = sorted(demand.model for demand in replica.group.demands)
    return {("group", replica.group.name): "\0group\0"} | {
        ("model", name): f"\0{at:04}\0" for at, name in enumerate(models)
    }


def _renamed(replica: Replica, names: Mapping[tuple[str, str], str]) -> Replica:
    group = replica.group
    demands = tuple(replace(demand, model=names["model", demand.model]) for demand in group.demands)
    return replace(replica, group=replace(group, name=names["group", group.name], demands=demands))


def diagnose(view: FitView, replica: Replica) -> Diagnosis:
    """Return why a replica has no place: what is short of all that it needs."""
    diagnoses = (rule(view, replica) for rule in _RULES)
    return next((diagnosis for diagnosis in diagnoses if diagnosis), None) or occupied(view, replica)


def _too_close(view: FitView, replica: Replica) -> Diagnosis | None:
    """Diagnose a replica that would fit if its group were not spread."""
    return too_close(view.layout, replica)


def _in_the_way(view: FitView, replica: Replica) -> Diagnosis | None:
    """Diagnose a replica that would fit if its group were kept apart from nothing."""
    return in_the_way(view.layout, replica)


def _no_matching_node(view: FitView, replica: Replica) -> Diagnosis | None:
    """Diagnose a model that requires other nodes, or that fits only on nodes that it may not have."""
    nodes = list(view.layout.topology.nodes.values())
    matches = matching(nodes, replica.group)
    if len(matches) == len(nodes):
        return None
    if not matches:
        return no_match(nodes, replica.group)
    why = diagnose(view.of_nodes(matches), replica)
    return Diagnosis(why.reason, f"{why.message} {of_matching(nodes, len(matches), replica.group)}")


def _no_engine(view: FitView, replica: Replica) -> Diagnosis | None:
    """Diagnose a model whose engines are for other nodes, or that fits only where there is none for it."""
    nodes, group = view.layout.topology.nodes, replica.group
    built = view.for_engines(group)
    if built is view:
        return None
    if not built.layout.topology.nodes:
        return Diagnosis(
            Reason.NO_ENGINE_FOR_ARCHITECTURE,
            f"{engines(group)}, and the pool's nodes have {architectures(nodes.values(), group)}. Add a node that "
            "there is an engine for, or see the condition EngineReady for why there is none.",
        )
    why = diagnose(built, replica)
    others = tuple(node for node in nodes.values() if not group.has_engines_for(node))
    return Diagnosis(
        why.reason,
        f"{why.message} Of {quantity(len(nodes), 'node')} the pool has {len(nodes) - len(others)} that it has "
        f"engines for: {engines(group)}, and others have {architectures(others, group)}.",
    )


_RULES: tuple[Callable[[FitView, Replica], Diagnosis | None], ...] = (
    no_nodes,
    no_gpus,
    _no_matching_node,
    _no_engine,
    config_too_large,
    _too_close,
    _in_the_way,
    too_large,
    no_config_space,
    server_limit,
    withheld,
    apart,
    all_left,
)
