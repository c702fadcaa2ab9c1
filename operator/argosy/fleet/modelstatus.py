"""An InferenceModel's status."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

from argosy.api import Condition, ConditionType, InferenceModel, InferenceModelStatus, Reason
from argosy.api.status import FootprintStatus, PlacementStatus, ScalingStatus
from argosy.fleet.facts import ServerReport
from argosy.fleet.loading import Loading
from argosy.fleet.placed import place, placed_finding, placement_on, servers_with
from argosy.fleet.plan import PoolPlan
from argosy.fleet.transitions import Finding, conditions
from argosy.fleet.unsupported import unused_model_settings, unused_scaling_settings
from argosy.fleet.verdict import verdict


def model_status(
    model: InferenceModel,
    plan: PoolPlan,
    reports: Mapping[str, ServerReport],
    before: Sequence[Condition],
    now: datetime,
    suspended: bool = False,
    pinned: Collection[int] = (),
) -> InferenceModelStatus:
    """The status of a valid model. `pinned` are older versions that ensembles hold to, which are no
    leftovers.
    """
    servers = servers_with(plan, [model.name])
    seats = [placement_on(server, model.name) for server in servers]
    places = [
        place(server, seat.version, seat.gpus, seat.instances) for server, seat in zip(servers, seats, strict=True)
    ]
    loading = Loading.of(model.name, model.spec.version, [server.name for server in servers], reports)
    return InferenceModelStatus(
        observed_generation=model.metadata.generation,
        conditions=conditions(
            before,
            _findings(model, plan, places, loading, suspended, pinned),
            model.metadata.generation,
            now,
        ),
        replicas=len(servers),
        available_replicas=len(loading.available),
        url=loading.url,
        versions=loading.versions(),
        active_version=loading.active_version,
        placement=tuple(places),
        footprint=_footprint(model),
        scaling=ScalingStatus(
            desired_replicas=len(servers) + sum(1 for each in plan.unplaced if model.name in each.models),
            reason=Reason.FIXED_REPLICAS,
        ),
    )


def _findings(
    model: InferenceModel,
    plan: PoolPlan,
    places: Sequence[PlacementStatus],
    loading: Loading,
    suspended: bool,
    pinned: Collection[int],
) -> list[Finding]:
    parts = [
        _valid(model),
        placed_finding(plan, suspended, [model.name], places),
        *_engine(model),
        loading.finding(),
        _scaling(model),
    ]
    rolling = "" if model.spec.version_policy else loading.rolling(pinned)
    return [*verdict(parts, loading.serving(), rolling), *parts]


def _valid(model: InferenceModel) -> Finding:
    unused = unused_model_settings(model)
    if unused:
        return Finding(
            ConditionType.VALID, True, Reason.SETTING_WITHOUT_EFFECT, f"without effect in this release: {unused}"
        )
    return Finding(ConditionType.VALID, True, Reason.VALID)


def _engine(model: InferenceModel) -> list[Finding]:
    engine = model.spec.engine
    ready, verified = ConditionType.ENGINE_READY, ConditionType.ACCURACY_VERIFIED
    if engine is None:
        return [
            Finding(ready, True, Reason.ENGINE_NOT_NEEDED),
            Finding(verified, True, Reason.ACCURACY_NOT_REQUIRED),
        ]
    built = Finding(
        ready,
        False,
        Reason.SETTING_WITHOUT_EFFECT,
        "spec.engine: this release builds no engines; the files at storageUri are served as they are. Point "
        "storageUri at a built engine, or leave spec.engine out",
    )
    if engine.accuracy is None:
        return [built, Finding(verified, True, Reason.ACCURACY_NOT_REQUIRED)]
    message = "spec.engine.accuracy: this release builds no engines, so nothing was compared"
    return [built, Finding(verified, False, Reason.SETTING_WITHOUT_EFFECT, message)]


def _scaling(model: InferenceModel) -> Finding:
    unused = unused_scaling_settings(model)
    stays = f"replicas stay at minReplicas ({model.spec.min_replicas}) or what an ensemble asks for"
    if unused:
        return Finding(
            ConditionType.SCALING,
            False,
            Reason.SETTING_WITHOUT_EFFECT,
            f"without effect in this release: {unused}; {stays}",
        )
    return Finding(ConditionType.SCALING, True, Reason.FIXED_REPLICAS, stays)


def _footprint(model: InferenceModel) -> FootprintStatus:
    spec = model.spec
    return FootprintStatus(
        gpu_memory=spec.footprint.gpu_memory, compute=spec.footprint.compute, gpus=spec.gpus, measured=False
    )
