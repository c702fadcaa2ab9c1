"""Bindings of models and ensembles to servers."""

from collections.abc import Mapping
from dataclasses import dataclass

from argosy.planning.demand.members import Members
from argosy.planning.plan import PoolPlan
from argosy.planning.variants import shares_server

Binding = tuple[str, str]
"""A server, and a model or ensemble there."""


@dataclass(frozen=True, slots=True)
class PlannedBindings:
    """The bindings of a plan: `servers` by model and ensemble, `names` of models and ensembles by server.

    `unschedulable`: models with a replica that fits nowhere, and ensembles that contain such a model.
    """

    servers: Mapping[str, tuple[str, ...]]
    names: Mapping[str, frozenset[str]]
    unschedulable: frozenset[str]

    @classmethod
    def of(cls, plan: PoolPlan, members: Members) -> "PlannedBindings":
        """Return the bindings of one pool's plan. An ensemble is bound to each server that has all of its models; a
        model whose variants have replicas of their own, to each that has one of them.
        """
        names = {server.name: {placement.model for placement in server.placements} for server in plan.servers}
        servers: dict[str, list[str]] = {}
        for server in plan.servers:
            for placement in server.placements:
                servers.setdefault(placement.model, []).append(server.name)
        for ensemble, models in members.runs.items():
            if shares_server(members.ensembles[ensemble]):
                complete = [name for name in servers.get(models[0], ()) if names[name] >= set(models)] if models else []
            else:
                complete = sorted({name for model in models for name in servers.get(model, ())})
            servers[ensemble] = complete
            for server_name in complete:
                names[server_name].add(ensemble)
        unplaced = {model for replica in plan.unplaced for model in replica.models}
        return cls(
            {name: tuple(bound) for name, bound in servers.items()},
            {server_name: frozenset(bound) for server_name, bound in names.items()},
            frozenset(unplaced | {name for name, models in members.runs.items() if unplaced & set(models)}),
        )
