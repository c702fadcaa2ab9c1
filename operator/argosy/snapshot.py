"""All that one round is decided from, as it stood when the round began."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from argosy.api.documents import Resource
from argosy.api.problems import Problem
from argosy.api.status import EngineStatus, EnsembleStatus, InferenceModelStatus, ScalingStatus, Status
from argosy.api.values.identity import PoolKey
from argosy.autoscaling.bottlenecks.diagnose import BottleneckReport
from argosy.autoscaling.decision import Decision
from argosy.planning.builds.build import ObservedBuild
from argosy.planning.demand.pool_facts import LoadedVersions
from argosy.planning.facts import CurrentServer, Device, Node, Refusal, ServerReport
from argosy.planning.migration.bindings import Binding
from argosy.planning.nodes.device_errors import DeviceErrors
from argosy_agent.contract import RenderedRepository
from argosy_agent.contract.builds import ModelShape


@dataclass(frozen=True, slots=True)
class PoolSnapshot:
    """What stands of one pool's servers.

    `servers`: where each sits, as it was last decided. `reports`: what each says of itself. `repositories`: what each
    last loaded; `served`: what it had ready when it was last heard of. `drain_since`: from when what drains is not
    routed to. `moved`: names that a pool which takes no part here is to serve by now, and whether requests reach
    them there. `builds`: what is known of the pool's builds, by `BuildRequest.name`. `held`: by
    resource name the requests that wait at the activator for what no server has ready; `holds`: whether there is one
    that would hold them, without which nothing goes to zero. `device_errors`: those that its servers reported lately.
    """

    servers: tuple[CurrentServer, ...] = ()
    reports: tuple[ServerReport, ...] = ()
    repositories: tuple[RenderedRepository, ...] = ()
    served: tuple[RenderedRepository, ...] = ()
    drain_since: Mapping[Binding, datetime] = field(default_factory=dict)
    moved: Mapping[str, bool] = field(default_factory=dict)
    builds: Mapping[str, ObservedBuild] = field(default_factory=dict)
    holds: bool = False
    device_errors: DeviceErrors = field(default_factory=DeviceErrors)

    @property
    def answering(self) -> frozenset[str]:
        """The names of the servers that answer."""
        return frozenset(report.name for report in self.reports if report.ready)

    @property
    def loaded_versions(self) -> LoadedVersions:
        """The versions that each server has loaded of each model."""
        return {
            repository.server: {
                model.declared_name: model.versions.keys() for model in repository.models if not model.is_ensemble
            }
            for repository in self.repositories
        }


@dataclass(frozen=True, slots=True)
class FleetSnapshot:
    """One pool, or several that share nodes, with all that asks for them.

    `pools` are by the pool's key; one that is not among them has no servers yet. `problems` are those found when the
    resources were read. A resource among `resources` that one of them names has its last valid spec there: it is
    served, and its status says what is wrong. One among `faulty` has no valid spec; it only gets a status.

    By identity: `statuses` as they were last written, `valid` each resource with the spec that was acted upon before,
    `urls`, `grpc_addresses` and `selectors` what a status gives; without, a server's own URL. `bottlenecks` what is
    told to hold requests up. `decisions` how much there is to be of what scales; without one it goes on with what its
    status tells. `shapes` those of models whose files tell before they are served. `refusals` are what
    could not be applied last time. `claimed` are GPUs that pools which take no part here ask for, `cordoned` those that
    the statuses of such pools cordon. `build_image` is the image that builds engines where a model names none.
    """

    resources: tuple[Resource, ...]
    nodes: tuple[Node, ...]
    pools: Mapping[PoolKey, PoolSnapshot] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()
    faulty: tuple[Resource, ...] = ()
    statuses: Mapping[str, Status] = field(default_factory=dict)
    valid: Mapping[str, Resource] = field(default_factory=dict)
    refusals: tuple[Refusal, ...] = ()
    urls: Mapping[str, str] = field(default_factory=dict)
    grpc_addresses: Mapping[str, str] = field(default_factory=dict)
    selectors: Mapping[str, str] = field(default_factory=dict)
    claimed: frozenset[Device] = frozenset()
    cordoned: frozenset[Device] = frozenset()
    build_image: str = ""
    shapes: Mapping[str, ModelShape] = field(default_factory=dict)
    bottlenecks: Mapping[str, BottleneckReport] = field(default_factory=dict)
    decisions: Mapping[str, Decision] = field(default_factory=dict)

    def pool(self, key: PoolKey) -> PoolSnapshot:
        """Return the snapshot of one pool; empty for a pool that has no servers yet."""
        return self.pools.get(key, PoolSnapshot())

    def status(self, resource: Resource) -> Status | None:
        """Return the status of a resource as it was last written."""
        return self.statuses.get(resource.identity) or resource.status

    def engine_statuses(self, resources: Iterable[Resource]) -> dict[str, tuple[EngineStatus, ...]]:
        """Return the engines that the models' statuses list, by identity."""
        statuses = ((resource.identity, self.status(resource)) for resource in resources)
        return {name: status.engines for name, status in statuses if isinstance(status, InferenceModelStatus)}

    def scaling_statuses(self, resources: Iterable[Resource]) -> dict[str, ScalingStatus]:
        """Return the earlier scaling decisions that statuses carry, by identity."""
        statuses = ((resource.identity, self.status(resource)) for resource in resources)
        return {
            name: status.scaling
            for name, status in statuses
            if isinstance(status, InferenceModelStatus | EnsembleStatus) and status.scaling is not None
        }

    @property
    def servers(self) -> list[CurrentServer]:
        """The servers of all pools."""
        return [server for pool in self.pools.values() for server in pool.servers]
