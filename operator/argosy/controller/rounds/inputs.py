"""The inputs of one round of a pool, from the operator's caches."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache

from argosy.api import Ensemble, InferenceModel, Problem, Resource, ServingPool
from argosy.api.values.identity import PoolKey
from argosy.api.values.reuse import RoundCache
from argosy.cluster.cache.pods.pod_cache import PodView
from argosy.cluster.cache.pods.routing import Routes
from argosy.cluster.cache.pool_view import PoolView
from argosy.controller.resources.store import Declared
from argosy.controller.rounds.report_expiry import ReportExpiry
from argosy.planning.builds.images import BuildImages
from argosy.planning.facts import CurrentServer, Device, Node, OtherPools, Refusal, ServerReport
from argosy.planning.migration.observed import Observed
from argosy.planning.nodes.device_errors import DeviceErrors
from argosy.planning.packing.priorities import RankedPlan
from argosy.planning.rollouts.memory import RolloutMemory
from argosy.render.workloads import (
    member_grpc_address,
    member_selector,
    member_url,
    pool_grpc_address,
    pool_selector,
    pool_url,
)
from argosy.scaling import Decided
from argosy.snapshot import FleetSnapshot, PoolSnapshot


@dataclass(slots=True)
class Memory:
    """Results of a pool's last round that are not in the cluster."""

    valid: Mapping[str, Resource] | None = None
    refusals: tuple[Refusal, ...] = ()
    ages: ReportExpiry = field(default_factory=ReportExpiry)
    device_errors: DeviceErrors = field(default_factory=DeviceErrors)
    routed: frozenset[tuple[PodView, Routes]] = frozenset()
    packed: RankedPlan | None = None
    cache: RoundCache = field(default_factory=RoundCache)


@dataclass(frozen=True, slots=True)
class RoundInputs:
    """What is declared and observed of a pool, and results of its last round.

    `moved`: members that now refer to another pool, and whether requests reach them there.
    """

    key: PoolKey
    declared: Declared
    view: PoolView
    memory: Memory
    moved: Mapping[str, bool]

    @property
    def is_unreadable(self) -> bool:
        """Whether the pool exists and its spec is invalid."""
        return self.declared.pool is None and any(
            isinstance(resource, ServingPool) for resource in self.declared.faulty
        )


def round_snapshot(
    inputs: RoundInputs,
    *,
    nodes: tuple[Node, ...],
    servers: tuple[CurrentServer, ...],
    reports: tuple[ServerReport, ...],
    others: OtherPools,
    cordoned: frozenset[Device],
    conflicts: tuple[Problem, ...],
    scaling: Decided,
    rollouts: Mapping[str, RolloutMemory],
    build_images: BuildImages,
    engine_image: str = "",
    placeholders: bool = False,
) -> FleetSnapshot:
    """Return the snapshot of a round's inputs.

    `others`: what other pools say of GPUs; `cordoned`: GPUs that they cordon. `conflicts`: names that another pool's
    member has. `scaling`: the decisions and diagnoses of scaling. `rollouts`: those of members, by identity.
    """
    declared, view, memory = inputs.declared, inputs.view, inputs.memory
    pool = PoolSnapshot(
        servers=servers,
        reports=reports,
        repositories=view.repositories,
        served=view.served,
        drain_since=view.drain_since,
        moved=inputs.moved,
        builds={name: build.observed for name, build in view.builds.items()},
        holds=view.activator_ready,
        device_errors=memory.device_errors,
    )
    return FleetSnapshot(
        resources=declared.resources,
        nodes=nodes,
        pools={inputs.key: pool},
        problems=(*declared.problems, *conflicts),
        faulty=declared.faulty,
        statuses={resource.identity: resource.status for resource in declared.every if resource.status is not None},
        valid=memory.valid if memory.valid is not None else declared.restored,
        refusals=memory.refusals,
        urls=_urls(declared),
        grpc_addresses=_grpc_addresses(declared),
        selectors=_selectors(declared),
        others=others,
        cordoned=cordoned,
        build_images=build_images,
        engine_image=engine_image,
        placeholders=placeholders,
        decisions=scaling.decisions,
        bottlenecks=scaling.bottlenecks,
        language=scaling.language,
        footprints=scaling.footprints,
        variants=scaling.variants,
        regimes=scaling.regimes,
        rollouts=rollouts,
        evidence=scaling.evidence,
        recordings=scaling.recordings,
    )


def moved_members(declared: Declared, view: PoolView, pool: Callable[[PoolKey], PoolView]) -> dict[str, bool]:
    """Return the models and ensembles that this pool's servers still have and another pool is to serve.

    By name, whether requests reach it in the other pool. `pool` returns the view of a pool by its key.
    """
    loaded = {(model.declared_name, model.is_ensemble) for member in view.repositories for model in member.models}
    observed = cache(lambda key: Observed.of(pool(key).reports))
    moved = (member for member in declared.of_other_pools if (member.name, isinstance(member, Ensemble)) in loaded)
    return {member.name: _reached(member, observed) for member in moved}


def _reached(member: InferenceModel | Ensemble, observed: Callable[[PoolKey], Observed]) -> bool:
    status = member.status
    if status is None or not status.ready or status.observed_generation != member.metadata.generation:
        return False
    there = observed(member.pool_key)
    return any(there.reachable(server, member.name) for server in there.reports)


def _urls(declared: Declared) -> dict[str, str]:
    """Return the URLs of the pool and its members, by identity."""
    urls: dict[str, str] = {member.identity: member_url(member) for member in declared.members}
    if declared.pool is not None:
        urls[declared.pool.identity] = pool_url(declared.pool)
    return urls


def _grpc_addresses(declared: Declared) -> dict[str, str]:
    """Return the gRPC addresses of the pool and its members, by identity."""
    addresses: dict[str, str] = {member.identity: member_grpc_address(member) for member in declared.members}
    if declared.pool is not None:
        addresses[declared.pool.identity] = pool_grpc_address(declared.pool)
    return addresses


def _selectors(declared: Declared) -> dict[str, str]:
    """Return the label selectors of the Pods of the pool and its members, by identity."""
    selectors: dict[str, str] = {member.identity: member_selector(member) for member in declared.members}
    if declared.pool is not None:
        selectors[declared.pool.identity] = pool_selector(declared.pool)
    return selectors
