"""The part of a pool that one server's next step follows from: what it has and is to have, and who else has that."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from argosy.api.servingpool import RuntimeName
from argosy.api.values.reuse import RoundCache
from argosy.planning.demand.members import Members, only
from argosy.planning.migration.bindings import PlannedBindings
from argosy.planning.migration.observed import Observed
from argosy.planning.plan import ServerPlan

Value = TypeVar("Value")
Derive = Callable[[Members, PlannedBindings, Observed], Value]
"""Derives a value of one server from nothing but these."""


@dataclass(frozen=True, slots=True, eq=False)
class ServerViews:
    """The servers of a pool, each with the part of the pool that it follows from.

    A server with a model of a rollout by replicas follows from all that have it, and has no such part.
    """

    members: Members
    bindings: PlannedBindings
    observed: Observed
    runtime: RuntimeName = RuntimeName.ARGOSY
    cache: RoundCache = field(default_factory=RoundCache)
    _of_names: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    _inputs: dict[str, tuple[Any, ...] | None] = field(default_factory=dict)

    def value(self, sort: str, server: ServerPlan, more: object, derive: Derive[Value]) -> Value:
        """Return a value of one sort of a server: that of the round before where all that it follows from is equal.

        `more`: further inputs.
        """
        inputs = self._inputs_of(server)
        if inputs is None:
            return derive(self.members, self.bindings, self.observed)
        reused = self.cache.sort(sort)
        return reused.value(server.name, (inputs, more), lambda: derive(*self._narrowed(server)))

    def _inputs_of(self, server: ServerPlan) -> tuple[Any, ...] | None:
        if server.name not in self._inputs:
            names = self._names(server)
            self._inputs[server.name] = self._compared(server, names) if self._is_apart(names) else None
        return self._inputs[server.name]

    def _is_apart(self, names: Iterable[str]) -> bool:
        rollouts = self.members.rollouts
        return not any(name in rollouts and rollouts[name].by_replicas for name in names)

    def _compared(self, server: ServerPlan, names: Sequence[str]) -> tuple[Any, ...]:
        engines, observed = self.members.engines, self.observed
        return (
            server,
            self.runtime,
            self.bindings.names[server.name],
            observed.loaded.get(server.name),
            observed.served.get(server.name),
            engines.nodes.get(server.node) if engines.files else None,
            [self._of_name(name) for name in names],
        )

    def _of_name(self, name: str) -> tuple[Any, ...]:
        """Return all that is known of a model or an ensemble and counts on each of its servers."""
        if name not in self._of_names:
            members, observed = self.members, self.observed
            self._of_names[name] = (
                name,
                members.models.get(name),
                members.ensembles.get(name),
                members.rollouts.get(name),
                members.measured.get(name),
                members.engines.files.get(name),
                name in members.scaled,
                observed.reported.get(name),
                observed.sources.get(name),
            )
        return self._of_names[name]

    def _names(self, server: ServerPlan) -> tuple[str, ...]:
        """Return what the server has or is to have, and the steps of its ensembles."""
        members = self.members
        bound = sorted(self.bindings.names[server.name])
        names = dict.fromkeys([*bound, *self.observed.loaded.get(server.name, ())])
        for name in bound:
            ensemble = members.ensembles.get(name)
            if ensemble is not None:
                names |= dict.fromkeys(step.model for step in ensemble.spec.steps)
                for proven in members.proven_revisions(name).values():
                    names |= dict.fromkeys(proven.pins)
        return tuple(names)

    def _narrowed(self, server: ServerPlan) -> tuple[Members, PlannedBindings, Observed]:
        """Return the pool as if there were nothing but this server, and what else has something of it."""
        members, observed, here, names = self.members, self.observed, server.name, self._names(server)
        of_names = members.of_names(names)
        engines = replace(of_names.engines, nodes=only(members.engines.nodes, (server.node,)), waiting={})
        of_names = replace(of_names, runs={}, broken=frozenset(), shapes={}, engines=engines)
        bindings = PlannedBindings({}, {here: self.bindings.names[here]}, frozenset())
        seen = Observed(
            reported=only(observed.reported, names),
            loaded=only(observed.loaded, (here,)),
            served=only(observed.served, (here,)),
            sources=only(observed.sources, names),
        )
        return of_names, bindings, seen
