"""An InferenceModel's status."""

from collections.abc import Sequence
from datetime import datetime

from argosy.api import Condition, ConditionType, InferenceModel, InferenceModelStatus, Reason, ServingPool
from argosy.api.status import FootprintStatus, PlacementStatus, ScalingStatus
from argosy.fleet.status.conditions import Finding, conditions
from argosy.fleet.status.kstatus import verdict
from argosy.fleet.status.loading import Loading
from argosy.fleet.status.placed import first_places, place, placed_finding, placement_on
from argosy.fleet.status.served import Served
from argosy.fleet.status.unsupported import unused_model_settings, unused_scaling_settings


def model_status(
    model: InferenceModel, served: Served, before: Sequence[Condition], now: datetime
) -> InferenceModelStatus:
    """The status of a valid model of a pool."""
    servers = served.servers_with(model.name)
    seats = [placement_on(server, model.name) for server in servers]
    places = [
        place(server, seat.version, seat.gpus, seat.instances) for server, seat in zip(servers, seats, strict=True)
    ]
    loading = served.loading(model.name, model.spec.version, servers)
    return InferenceModelStatus(
        observed_generation=model.metadata.generation,
        conditions=conditions(
            before,
            _findings(model, served, places, loading),
            model.metadata.generation,
            now,
        ),
        replicas=len(servers),
        available_replicas=len(loading.available),
        url=loading.url,
        versions=loading.versions(),
        active_version=loading.active_version,
        **first_places(places),
        footprint=_footprint(model),
        scaling=ScalingStatus(
            desired_replicas=len(servers) + len(served.without_place(model.name)),
            reason=Reason.FIXED_REPLICAS,
        ),
    )


def _findings(
    model: InferenceModel, served: Served, places: Sequence[PlacementStatus], loading: Loading
) -> list[Finding]:
    parts = [
        _valid(model, served.pool),
        placed_finding(served, model.name, places),
        *_engine(model),
        loading.finding(),
        _scaling(model),
    ]
    # versions that ensembles hold to are no leftovers
    rolling = "" if model.spec.version_policy else loading.rolling(served.pinned.get(model.name, ()))
    return [*verdict(parts, loading.serving(), rolling), *parts]


def _valid(model: InferenceModel, pool: ServingPool) -> Finding:
    unused = unused_model_settings(model, pool)
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
        Reason.ENGINE_NOT_BUILT,
        "spec.engine: this release builds no engines. Point storageUri at a built one, or leave spec.engine out",
    )
    if engine.accuracy is None:
        return [built, Finding(verified, True, Reason.ACCURACY_NOT_REQUIRED)]
    message = "spec.engine.accuracy: this release builds no engines, so nothing was compared"
    return [built, Finding(verified, False, Reason.ACCURACY_PENDING, message)]


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
