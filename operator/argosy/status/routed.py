"""The status of a model with variants: its own conditions from those of its variants, and what each of them does."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from argosy.api import Condition, ConditionType, InferenceModelStatus, Reason
from argosy.autoscaling.pool.variants import VariantsReport
from argosy.planning.variants import RoutedModel, VariantModel
from argosy.status.conditions import Finding, conditions
from argosy.status.findings.adapters import adapter_statuses, without_adapters
from argosy.status.findings.availability import availability
from argosy.status.findings.engines import engine_findings
from argosy.status.findings.loading import Loading
from argosy.status.findings.placed import first_placements, placed_finding, placement_status
from argosy.status.findings.scaling import ScaledMember, scaling, scaling_status
from argosy.status.findings.unsupported import unused_model_settings
from argosy.status.findings.variants import regime_status, variant_status
from argosy.status.kstatus import verdict
from argosy.status.progress import PoolProgress


def routed_status(
    model: RoutedModel,
    variants: Sequence[VariantModel],
    progress: PoolProgress,
    before: Sequence[Condition],
    scaled: ScaledMember,
    report: VariantsReport | None,
    now: datetime,
) -> InferenceModelStatus:
    """Return the status of a valid model with variants. `report`: what is measured of them."""
    servers = progress.servers_with(model.name)
    runs = progress.members.runs.get(model.name, ())
    placements = [
        placement_status(s, model.spec.version, sorted({g for p in s.placements if p.model in runs for g in p.gpus}), 1)
        for s in servers
    ]
    loading = progress.loading(model.name, [model.spec.version], servers)
    of_variants = {
        variant.name: progress.loading(variant.name, variant.spec.declared_versions, servers) for variant in variants
    }
    statuses = tuple(variant_status(variant, of_variants[variant.name], progress, report) for variant in variants)
    regime = regime_status(model, report)
    parts = [
        _valid(model, progress, regime.message, without_adapters(model, variants)),
        placed_finding(progress, model, placements),
        *_engines(variants, progress),
        _loaded(loading, variants, of_variants),
        availability(loading),
        scaling(scaled),
    ]
    generation = model.metadata.generation
    return InferenceModelStatus(
        observed_generation=generation,
        conditions=conditions(before, [*verdict(parts, loading.serving(), loading.rolling()), *parts], generation, now),
        replicas=len(servers),
        available_replicas=len(loading.available),
        url=loading.url,
        grpc_address=loading.grpc_address,
        versions=loading.versions(),
        active_version=loading.active_version,
        **first_placements(placements),
        scaling=scaling_status(scaled, len(servers) + len(progress.unplaced_of(model.name))),
        adapters=adapter_statuses(model.declared, progress),
        variants=statuses,
        regime=regime,
    )


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
