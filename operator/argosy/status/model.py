"""An InferenceModel's status."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from argosy.api import Condition, ConditionType, InferenceModel, InferenceModelStatus, Reason
from argosy.api.model.footprint import Footprint
from argosy.api.status import FootprintStatus, PlacementStatus
from argosy.planning.demand.footprint import footprint_of
from argosy.planning.plan import Placement
from argosy.planning.topology.deployment import Deployment
from argosy.planning.topology.rules import advice
from argosy.status.conditions import Finding, conditions
from argosy.status.findings.adapters import adapter_statuses
from argosy.status.findings.availability import availability
from argosy.status.findings.engines import engine_findings, engine_statuses, first_engines, with_engines
from argosy.status.findings.loading import Loading
from argosy.status.findings.placed import first_placements, placed_finding, placement_on, placement_status
from argosy.status.findings.scaling import ScaledMember, scaling, scaling_status
from argosy.status.findings.unsupported import unused_model_settings
from argosy.status.kstatus import verdict
from argosy.status.measured.deviation import footprint_deviation
from argosy.status.progress.pool_progress import PoolProgress
from argosy.status.rollout import unsettled
from argosy_agent.contract.builds import ModelShape

UNMEASURED = (
    "it has that GPU for itself, for what it takes is neither declared nor measured. Set spec.footprint.gpuMemory so "
    "that others may share the GPU, or spec.footprint.device: CPU"
)


def model_status(
    model: InferenceModel, progress: PoolProgress, before: Sequence[Condition], scaled: ScaledMember, now: datetime
) -> InferenceModelStatus:
    """Return the status of a valid model of a pool."""
    servers = progress.servers_with(model.name)
    placements = [placement_on(server, model.name) for server in servers]
    statuses = [
        placement_status(server, placement.version, placement.gpus, placement.instances)
        for server, placement in zip(servers, placements, strict=True)
    ]
    serving = progress.members.models.get(model.name, model)
    loading = progress.loading(model.name, serving.spec.declared_versions, servers)
    return InferenceModelStatus(
        observed_generation=model.metadata.generation,
        conditions=conditions(
            before,
            _findings(model, progress, statuses, loading, scaled, now),
            model.metadata.generation,
            now,
        ),
        replicas=len(servers),
        available_replicas=len(loading.available),
        url=loading.url,
        grpc_address=loading.grpc_address,
        versions=with_engines(loading.versions(), model, progress),
        active_version=loading.active_version,
        **first_placements(statuses),
        **first_engines(engine_statuses(model, progress)),
        footprint=_footprint(model, statuses, progress.members.shapes.get(model.name), placements),
        adapters=adapter_statuses(model, progress),
        scaling=scaling_status(scaled, len(servers) + len(progress.unplaced_of(model.name))),
    )


def _findings(
    model: InferenceModel,
    progress: PoolProgress,
    statuses: Sequence[PlacementStatus],
    loading: Loading,
    scaled: ScaledMember,
    now: datetime,
) -> list[Finding]:
    parts = [
        _valid(model, progress, now),
        _placed(model, progress, statuses),
        *engine_findings(model, progress),
        loading.finding(),
        availability(loading),
        scaling(scaled),
    ]
    rolling = loading.rolling(progress.pinned.get(model.name, ()), model.spec.version_policy is not None)
    rollout = unsettled(progress.members.rollouts.get(model.name))
    return [*verdict(parts, loading.serving(), rolling, rollout), *parts]


def _valid(model: InferenceModel, progress: PoolProgress, now: datetime) -> Finding:
    settings = (unused_model_settings(model, progress.pool), unused_traffic(model, progress))
    unused, advised = "; ".join(filter(None, settings)), topology_advice(model, progress)
    deviation = footprint_deviation(model, progress.members.measured.get(model.name), now)
    notes = [note for note in (deviation, advised) if note]
    notes += [f"without effect in this release: {unused}"] if unused else []
    reason = Reason.TOPOLOGY_ADVICE if advised else Reason.SETTING_WITHOUT_EFFECT if unused else Reason.VALID
    reason = Reason.FOOTPRINT_DIFFERS if deviation else reason
    return Finding(ConditionType.VALID, True, reason, "; ".join(notes))


def _placed(model: InferenceModel, progress: PoolProgress, statuses: Sequence[PlacementStatus]) -> Finding:
    finding = placed_finding(progress, model, statuses)
    measured = progress.members.measured.get(model.name)
    if (
        not finding.so
        or not footprint_of(model, measured=measured).assumed
        or not any(status.gpus for status in statuses)
    ):
        return finding
    return replace(finding, message=f"{finding.message}; {UNMEASURED}")


def _footprint(
    model: InferenceModel,
    statuses: Sequence[PlacementStatus],
    shape: ModelShape | None,
    placements: Sequence[Placement],
) -> FootprintStatus:
    """Return the declared footprint; undeclared memory is what the model's shape gives."""
    declared = model.spec.footprint or Footprint()
    need = footprint_of(model, has_gpus=any(status.gpus for status in statuses), shape=shape)
    memory = declared.gpu_memory if declared.gpu_memory is not None else need.memory or None
    surge = max((placement.surge for placement in placements), default=0) or None
    return FootprintStatus(gpu_memory=memory, compute=declared.compute, gpus=need.gpus, surge=surge)


def topology_advice(model: InferenceModel, progress: PoolProgress) -> str:
    """Return each piece of advice under its rule's name; empty where there is none, or the shape is not known."""
    shape = progress.members.shapes.get(model.name)
    if shape is None:
        return ""
    findings = advice(Deployment.of(model, shape, progress.state.machine))
    return "; ".join(f"{finding.rule}: {finding.message}" for finding in findings)


def unused_traffic(model: InferenceModel, progress: PoolProgress) -> str:
    """Return why `spec.traffic` changes nothing; empty where it does, or is not set."""
    if model.spec.traffic is None or model.name in progress.members.shapes:
        return ""
    return "spec.traffic: nothing tells the model's shape, which a config.json on this machine or a built engine would"
