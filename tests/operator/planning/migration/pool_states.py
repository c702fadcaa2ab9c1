"""One pool as its migration sees it: what the plan has, and servers that run what was declared before."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from tests.operator.planning.declared import gpu_node
from tests.operator.planning.simulated_cluster import POOL

from argosy.api import Ensemble, InferenceModel, Resource
from argosy.planning.demand.footprint import footprint_of, instances_of
from argosy.planning.demand.members import Members
from argosy.planning.facts import Node, ServerReport
from argosy.planning.migration.bindings import PlannedBindings
from argosy.planning.migration.observed import Observed
from argosy.planning.migration.revisions import ModelRevision, RevisionKeys
from argosy.planning.migration.state import PoolState
from argosy.planning.migration.versions import outdated_bindings, target_revisions
from argosy.planning.plan import Placement, PoolPlan, ServerPlan, Unplaced
from argosy_agent.contract import LoadedModel, LoadState


class FakeReloadKeys:
    """Keys for tests: a model's by what its spec says of how it runs, an ensemble's by its graph."""

    versions_differ = True

    def of_model(self, model: InferenceModel, placement: Placement, server: ServerPlan) -> RevisionKeys:
        """Return the keys of a model that is placed there."""
        spec, sits = model.spec, [server.gpus.index(gpu) for gpu in placement.gpus]
        runs = repr((spec.backend, spec.max_batch_size, spec.inputs, spec.outputs, spec.config))
        return RevisionKeys(repr((runs, sits, placement.instances, spec.batching)), runs)

    def of_ensemble(self, ensemble: Ensemble, pins: Mapping[str, int]) -> RevisionKeys:
        """Return the keys of an ensemble that runs these versions of its steps' models."""
        spec = ensemble.spec
        key = repr((spec.inputs, spec.outputs, spec.steps, sorted(pins.items())))
        return RevisionKeys(key, key)


KEYS = FakeReloadKeys()


def on(model: Resource, *gpus: int) -> Placement:
    """Return a replica of the model on these GPUs of its node, or on the CPU."""
    assert isinstance(model, InferenceModel)
    need, version = footprint_of(model), model.spec.version
    count = instances_of(model)
    return Placement(model.name, version, model.name, gpus, count, need.memory, need.compute, need.exclusive)


def server(name: str, *placements: Placement, node: str = "a", gpus: Sequence[int] | None = None) -> ServerPlan:
    """Return a server with these replicas and their GPUs, or `gpus`."""
    used = sorted({gpu for placement in placements for gpu in placement.gpus})
    return ServerPlan(name, node, tuple(used if gpus is None else gpus), placements)


@dataclass(frozen=True)
class Running:
    """A server as it runs: where it is, what it has loaded, and what it says of itself."""

    plan: ServerPlan
    revisions: Mapping[str, ModelRevision]
    report: ServerReport

    def reported(
        self,
        *,
        routes: Collection[str] | None = None,
        ready: bool = True,
        takes_requests: bool = True,
        others: Iterable[LoadedModel] = (),
    ) -> "Running":
        """Return the server with other reports: `routes` unless all are the same, and of some versions `others`."""
        reported_value = {(model.model, model.version): model for model in (*self.report.models, *others)}
        where = self.report.routes if routes is None else frozenset(routes)
        report = ServerReport(
            self.plan.name, ready, tuple(reported_value.values()), takes_requests=takes_requests and ready, routes=where
        )
        return replace(self, report=report)

    def holding(self, *revisions: ModelRevision) -> "Running":
        """Return the server with these revisions loaded instead, ready and routed."""
        return running_with(self.plan, {revision.name: revision for revision in revisions})


def running(plan: ServerPlan, resources: Iterable[Resource]) -> Running:
    """Return a server that has loaded all its placements, as `resources` declare them, ready and routed."""
    members = Members.of(POOL, resources)
    bindings = PlannedBindings.of(PoolPlan(POOL, (plan,), (), 0, 0, 0), members)
    return running_with(plan, target_revisions(plan, members, bindings, Observed(), KEYS))


def running_with(plan: ServerPlan, revisions: Mapping[str, ModelRevision]) -> Running:
    """Return a server on which these revisions are loaded, ready and routed."""
    reported = tuple(
        LoadedModel(revision.name, version, LoadState.READY)
        for revision in revisions.values()
        for version in revision.versions
    )
    return Running(
        plan, revisions, ServerReport(plan.name, True, reported, takes_requests=True, routes=frozenset(revisions))
    )


def pool_state(
    resources: Iterable[Resource],
    planned: Sequence[ServerPlan],
    runs: Sequence[Running] = (),
    *,
    nodes: Sequence[Node] | None = None,
    broken: Sequence[Resource] = (),
    moved: Mapping[str, bool] | None = None,
    unplaced: Sequence[str] = (),
) -> PoolState:
    """Return the state of a pool where `resources` are declared now. Nodes have as many GPUs of 80 GiB as are used
    there.
    """
    members = Members.of(POOL, resources, broken, moved)
    left = tuple(Unplaced(name, (name,), "NoRoom", "") for name in unplaced)
    plan = PoolPlan(POOL, tuple(planned), left, 0, 0, 0)
    bindings = PlannedBindings.of(plan, members)
    observed = Observed.of(
        [run.report for run in runs],
        {run.plan.name: run.revisions for run in runs},
        {run.plan.name: run.revisions for run in runs},
    )
    observed = replace(observed, outdated=outdated_bindings(planned, members, bindings, observed, KEYS))
    return PoolState(
        plan,
        members,
        bindings,
        observed,
        {run.plan.name: run.plan.current for run in runs},
        {node.name: node for node in (_nodes([*planned, *(run.plan for run in runs)]) if nodes is None else nodes)},
        {item.name: target_revisions(item, members, bindings, observed, KEYS) for item in planned},
    )


def _nodes(servers: Iterable[ServerPlan]) -> list[Node]:
    counts: dict[str, int] = {}
    for server in servers:
        counts[server.node] = max(counts.get(server.node, 1), *(gpu + 1 for gpu in server.gpus), 1)
    return [gpu_node(name, count) for name, count in counts.items()]
