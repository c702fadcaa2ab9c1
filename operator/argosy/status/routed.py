"""The status of a model with variants: its own conditions from those of its variants, and what each of them does."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from argosy.api import Condition, ConditionType, InferenceModelStatus, Reason
from argosy.api.scalingstatus import ScalingStatus
from argosy.api.status import VariantStatus
from argosy.api.statusparts import RegimeStatus
from argosy.autoscaling.pool.regimes import FleetRegime
from argosy.autoscaling.pool.variants import VariantsReport
from argosy.planning.migration.choices import VariantChoice
from argosy.planning.plan import ServerPlan
from argosy.planning.variants import RoutedModel, VariantModel
from argosy.status.conditions import Finding, conditions
from argosy.status.findings.adapters import adapter_statuses, without_adapters
from argosy.status.findings.availability import availability
from argosy.status.findings.engines import engine_findings
from argosy.status.findings.loading import Loading
from argosy.status.findings.placed import placed_finding, serving_fields, shared_placements
from argosy.status.findings.scaling import ScaledMember, scaling, scaling_status
from argosy.status.findings.separate import chosen_regime, largest_scaling, separate_scaling, variant_scaling
from argosy.status.findings.unsupported import unused_model_settings
from argosy.status.findings.variants import regime_status, variant_status
from argosy.status.kstatus import verdict
from argosy.status.progress.pool_progress import PoolProgress


@dataclass(frozen=True, slots=True)
class SeparateVariants:
    """What is decided on a model whose variants have servers of their own: the variant that requests go to, the regime
    that the load asks for, and the scaling of each variant by its name.
    """

    choice: VariantChoice
    regime: FleetRegime | None
    scaled: Mapping[str, ScaledMember]


def routed_status(
    model: RoutedModel,
    variants: Sequence[VariantModel],
    progress: PoolProgress,
    before: Sequence[Condition],
    scaled: ScaledMember,
    report: VariantsReport | None,
    now: datetime,
    separate: SeparateVariants | None = None,
) -> InferenceModelStatus:
    """Return the status of a valid model with variants. `report`: what is measured of them. `separate`: where they have
    servers of their own.
    """
    servers = progress.servers_with(model.name)
    placements = shared_placements(progress, model, servers)
    loading = progress.loading(model.name, [model.spec.version], servers)
    of_variants = _loadings(variants, progress, servers)
    scalings = _scalings(variants, of_variants, progress, separate)
    statuses = tuple(
        variant_status(variant, of_variants[variant.name], progress, report, scalings.get(variant.name))
        for variant in variants
    )
    regime, unplaced = regime_status(model, _measured(report, separate)), len(progress.unplaced_of(model.name))
    if separate is None:
        decided = _Decided(regime, scaling(scaled), scaling_status(scaled, len(servers) + unplaced))
    else:
        is_zero = not placements and not unplaced
        decided = _decided_separately(model, variants, separate, regime, statuses, is_zero=is_zero)
    parts = [
        _valid(model, progress, regime.message, without_adapters(model, variants)),
        placed_finding(progress, model, placements),
        *_engines(variants, progress),
        _loaded(loading, variants, of_variants),
        availability(loading),
        decided.finding,
    ]
    generation = model.metadata.generation
    return InferenceModelStatus(
        observed_generation=generation,
        conditions=conditions(before, [*verdict(parts, loading.serving(), loading.rolling()), *parts], generation, now),
        **serving_fields(loading, servers, placements) | (_largest(statuses, loading) if separate is not None else {}),
        scaling=decided.scaling,
        adapters=adapter_statuses(model.declared, progress),
        variants=statuses,
        regime=decided.regime,
    )


@dataclass(frozen=True, slots=True)
class _Decided:
    """The variant that requests go to, and the replicas of the model: as a condition, and in numbers."""

    regime: RegimeStatus
    finding: Finding
    scaling: ScalingStatus


def _decided_separately(
    model: RoutedModel,
    variants: Sequence[VariantModel],
    separate: SeparateVariants,
    regime: RegimeStatus,
    statuses: Sequence[VariantStatus],
    *,
    is_zero: bool,
) -> _Decided:
    """Return what is decided where variants have servers of their own. `regime`: by what is measured of them."""
    finding = separate_scaling([(variant, separate.scaled[variant.name]) for variant in variants])
    scalings = [status.scaling for status in statuses if status.scaling is not None]
    chosen = chosen_regime(regime, model, separate.choice, separate.regime, is_zero=is_zero)
    return _Decided(chosen, finding, largest_scaling(scalings, finding))


def _largest(variants: Sequence[VariantStatus], loading: Loading) -> dict[str, int]:
    """Return the replicas of a model whose variants have servers of their own: those of its largest variant. That is
    what `spec.replicas` sets, which /scale reads and writes together with `status.replicas`.
    """
    available = max((variant.available_replicas for variant in variants), default=0)
    return {
        "replicas": max((variant.replicas for variant in variants), default=0),
        "available_replicas": min(available, len(loading.available)),
    }


def _loadings(
    variants: Sequence[VariantModel], progress: PoolProgress, servers: tuple[ServerPlan, ...]
) -> dict[str, Loading]:
    """Return the loading of each variant, by its name: on the model's servers, or on its own."""
    return {
        variant.name: progress.loading(
            variant.name,
            variant.spec.declared_versions,
            progress.servers_with(variant.name) if variant.is_separate else servers,
        )
        for variant in variants
    }


def _scalings(
    variants: Sequence[VariantModel],
    loading: Mapping[str, Loading],
    progress: PoolProgress,
    separate: SeparateVariants | None,
) -> dict[str, ScalingStatus]:
    """Return the scaling of each variant that has replicas of its own, by its name."""
    if separate is None:
        return {}
    return {
        variant.name: variant_scaling(
            separate.scaled[variant.name],
            len(loading[variant.name].servers) + len(progress.unplaced_of(variant.name)),
        )
        for variant in variants
    }


def _measured(report: VariantsReport | None, separate: SeparateVariants | None) -> VariantsReport | None:
    """Return what is measured of the variants, shared among the servers that requests go to."""
    if report is None or separate is None:
        return report
    return replace(report, servers=max(1, len(separate.choice.servers)))


def _valid(model: RoutedModel, progress: PoolProgress, lacks: str, without: str) -> Finding:
    unused = unused_model_settings(model.declared, progress.pool)
    notes = [note for note in (lacks, without) if note]
    notes += [f"without effect in this release: {unused}"] if unused else []
    reason = Reason.SETTING_WITHOUT_EFFECT if unused else Reason.CROSSOVER_UNKNOWN if lacks else Reason.VALID
    return Finding(ConditionType.VALID, True, reason, "; ".join(notes))


def _engines(variants: Sequence[VariantModel], progress: PoolProgress) -> list[Finding]:
    """Return EngineReady and AccuracyVerified: each as it is of the first variant where it is not so."""
    findings = [(variant, finding) for variant in variants for finding in engine_findings(variant, progress)]
    merged: dict[ConditionType, Finding] = {}
    for variant, finding in findings:
        first = merged.get(finding.type)
        if first is None or (first.so and not finding.so) or (first.reason in _NOT_NEEDED and finding.so):
            message = f"variant {variant.spec_name}: {finding.message}" if finding.message else ""
            merged[finding.type] = replace(finding, message=message)
    return list(merged.values())


_NOT_NEEDED = (Reason.ENGINE_NOT_NEEDED, Reason.ACCURACY_NOT_REQUIRED)


def _loaded(loading: Loading, variants: Sequence[VariantModel], of_variants: dict[str, Loading]) -> Finding:
    """Return the condition Loaded: whether the model and all of its variants are loaded everywhere."""
    findings = [(variant, of_variants[variant.name].finding()) for variant in variants]
    missing = [(variant, finding) for variant, finding in findings if not finding.so]
    own = loading.finding()
    if not missing or not loading.servers:
        return own
    variant, finding = missing[0]
    meanwhile = "; the other variants serve" if loading.available and len(missing) < len(findings) else ""
    return replace(finding, message=f"variant {variant.spec_name}: {finding.message}{meanwhile}")
