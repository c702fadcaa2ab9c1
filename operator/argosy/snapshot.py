"""The inputs of one round, as they were when it began."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from argosy.analysis.recordings.recording import Recording
from argosy.api.documents import Resource
from argosy.api.problems import Problem
from argosy.api.scalingstatus import ScalingStatus
from argosy.api.status import EnsembleStatus, InferenceModelStatus, Status
from argosy.api.statusparts import EngineStatus
from argosy.api.values.identity import PoolKey
from argosy.autoscaling.bottlenecks.diagnose import BottleneckReport
from argosy.autoscaling.decision import Decision
from argosy.autoscaling.pool.language import LanguageReport
from argosy.autoscaling.pool.regimes import FleetRegime
from argosy.autoscaling.pool.variants import VariantsReport
from argosy.planning.builds.build import ObservedBuild
from argosy.planning.builds.images import BuildImages
from argosy.planning.demand.measured import MeasuredFootprint
from argosy.planning.demand.surges import LoadedVersions
from argosy.planning.facts import CurrentServer, Device, Node, OtherPools, Refusal, ServerReport
from argosy.planning.migration.bindings import Binding
from argosy.planning.nodes.device_errors import DeviceErrors
from argosy.planning.rollouts.memory import CandidateEvidence, RolloutMemory
from argosy_agent.contract import RenderedRepository
from argosy_agent.contract.builds import ModelShape


@dataclass(frozen=True, slots=True)
class PoolSnapshot:
    """The observed state of one pool's servers and builds.

    `servers`: the servers as last decided. `reports`: each server's report. `repositories`: the repository that each
    server last loaded; `served`: the part of it that was ready at its last report. `drain_since`: when each draining
    binding was removed from the routes. `moved`: names that a pool outside this round serves by now, and whether
    requests reach them there. `builds`: the pool's builds. `holds`: whether an activator queues requests; without one
    nothing is scaled to zero. `device_errors`: the errors that its servers reported recently.
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
        """The versions that each server has loaded of each model, with their bytes."""
        return {
            repository.server: {
                model.declared_name: {version: source.memory for version, source in model.versions.items()}
                for model in repository.models
                if not model.is_ensemble
            }
            for repository in self.repositories
        }


_NO_SERVERS = PoolSnapshot()


@dataclass(frozen=True, slots=True)
class FleetSnapshot:
    """The inputs of a round: one pool, or several that share nodes, with their resources.

    `pools` are by the pool's key; a pool that is missing there has no servers yet. `problems`: errors of parsing and
    validation. A resource in `resources` with a problem has its last valid spec there: it is served, and its status
    reports the problem. A resource in `faulty` has no valid spec; it only gets a status.

    By identity: `statuses` as last written; `valid`, each resource with the spec that was last acted upon; `urls`,
    `grpc_addresses` and `selectors`, the addresses for a status (a server's own URL without one); `bottlenecks`,
    `language`, `footprints` and `variants`, to report; `regimes` of models whose variants have servers of their own;
    `decisions` of scaling (without one, the allocation in the status applies); `shapes` of models whose files were
    read. `refusals`: objects that could not be applied last time. `others`: what pools outside this round say of
    GPUs; `cordoned`: GPUs that these pools' statuses cordon. `rollouts`: what is known of each member's rollout, and
    `evidence` of its candidate's step, by identity; `recordings`: the readings from which that followed, if they are
    recorded, which no decision reads. `build_images`: build engines of models that name none; `engine_image`: NVIDIA's
    server that opens those of TensorRT-LLM, where a pool names no image. `placeholders`: whether there may be Pods that
    ask node autoscalers for nodes, which needs a cluster and a PriorityClass.
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
    others: OtherPools = field(default_factory=OtherPools)
    cordoned: frozenset[Device] = frozenset()
    build_images: BuildImages = field(default_factory=BuildImages)
    engine_image: str = ""
    placeholders: bool = False
    shapes: Mapping[str, ModelShape] = field(default_factory=dict)
    bottlenecks: Mapping[str, BottleneckReport] = field(default_factory=dict)
    language: Mapping[str, LanguageReport] = field(default_factory=dict)
    footprints: Mapping[str, MeasuredFootprint] = field(default_factory=dict)
    variants: Mapping[str, VariantsReport] = field(default_factory=dict)
    regimes: Mapping[str, FleetRegime] = field(default_factory=dict)
    decisions: Mapping[str, Decision] = field(default_factory=dict)
    rollouts: Mapping[str, RolloutMemory] = field(default_factory=dict)
    evidence: Mapping[str, CandidateEvidence] = field(default_factory=dict)
    recordings: Mapping[str, Recording] = field(default_factory=dict)

    def pool(self, key: PoolKey) -> PoolSnapshot:
        """Return the snapshot of one pool; empty for a pool that has no servers yet."""
        return self.pools.get(key, _NO_SERVERS)

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
