"""What one round of a pool is decided from, put together from what the operator knows."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from argosy.api import Problem, Resource, ServingPool
from argosy.api.values.identity import PoolKey
from argosy.cluster.cache.pods.pod_cache import PodView
from argosy.cluster.cache.pods.routing import Routes
from argosy.cluster.cache.pool_view import PoolView
from argosy.controller.rendering.addresses import grpc_addresses, selectors, urls
from argosy.controller.resources.store import Declared
from argosy.controller.rounds.report_expiry import ReportExpiry
from argosy.planning.facts import CurrentServer, Device, Node, Refusal, ServerReport
from argosy.planning.nodes.device_errors import DeviceErrors
from argosy.scaling import Decided
from argosy.snapshot import FleetSnapshot, PoolSnapshot


@dataclass(slots=True)
class Memory:
    """What the last round of a pool led to, beyond what stands in the cluster."""

    valid: Mapping[str, Resource] | None = None
    refusals: tuple[Refusal, ...] = ()
    ages: ReportExpiry = field(default_factory=ReportExpiry)
    device_errors: DeviceErrors = field(default_factory=DeviceErrors)
    routed: frozenset[tuple[PodView, Routes]] = frozenset()


@dataclass(frozen=True, slots=True)
class RoundInputs:
    """What one round of a pool starts from: what is declared and observed of it, and what its last round led to.

    `moved`: what asks for another pool by now, and whether it is reached there.
    """

    key: PoolKey
    declared: Declared
    view: PoolView
    memory: Memory
    moved: Mapping[str, bool]

    @property
    def is_unreadable(self) -> bool:
        """Whether the pool is there, and its spec cannot be read."""
        return self.declared.pool is None and any(
            isinstance(resource, ServingPool) for resource in self.declared.faulty
        )


def round_snapshot(
    inputs: RoundInputs,
    *,
    nodes: tuple[Node, ...],
    servers: tuple[CurrentServer, ...],
    reports: tuple[ServerReport, ...],
    claimed: frozenset[Device],
    cordoned: frozenset[Device],
    conflicts: tuple[Problem, ...],
    scaling: Decided,
    build_image: str,
) -> FleetSnapshot:
    """Return all that a round is decided from.

    `claimed`: GPUs that other pools claim; `cordoned`: those that they have cordoned. `conflicts`: names that another
    pool's member has. `scaling`: what scaling decided and diagnosed.
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
        urls=urls(declared),
        grpc_addresses=grpc_addresses(declared),
        selectors=selectors(declared),
        claimed=claimed,
        cordoned=cordoned,
        build_image=build_image,
        decisions=scaling.decisions,
        bottlenecks=scaling.bottlenecks,
    )
