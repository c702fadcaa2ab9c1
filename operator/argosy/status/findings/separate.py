"""Findings of models whose variants have servers of their own: which variant requests go to, and how each is scaled."""

from collections.abc import Sequence
from dataclasses import replace

from argosy.api import Reason
from argosy.api.scalingstatus import ScalingStatus
from argosy.api.statusparts import RegimeStatus
from argosy.api.values.times import timestamp
from argosy.autoscaling.pool.regimes import FleetRegime
from argosy.planning.amounts import quantity
from argosy.planning.migration.choices import VariantChoice
from argosy.planning.variants import RoutedModel, VariantModel
from argosy.status.conditions import Finding, bounded
from argosy.status.findings.scaling import ScaledMember, scaling, scaling_status

_LONGEST = 1024


def chosen_regime(
    status: RegimeStatus, model: RoutedModel, choice: VariantChoice, regime: FleetRegime | None, *, is_zero: bool
) -> RegimeStatus:
    """Return the regime with the variant whose servers the model's Service leads to, and why it is another one than
    the load asks for. `is_zero`: whether the model is to have no replica, so that no variant is expected to answer.
    """
    names = dict(zip(model.variant_models, (variant.name for variant in model.spec.variants), strict=True))
    chosen, desired = names[choice.variant], names[choice.desired]
    why = regime.why if regime is not None else ""
    if chosen != desired:
        why = f"no server of {desired} answers, so requests go to {chosen} until one does"
    if not choice.servers:
        why = "" if is_zero else "no server of any variant answers"
    return status.model_copy(
        update={
            "variant": chosen,
            "servers": len(choice.servers),
            "since": timestamp(regime.since) if regime is not None and chosen == desired else None,
            "message": bounded("; ".join(filter(None, (status.message, why))), 500),
        }
    )


def separate_scaling(variants: Sequence[tuple[VariantModel, ScaledMember]]) -> Finding:
    """Return the condition Scaling of a model: false if it is of a variant, unknown only if it is of all of them, since
    nothing is measured of one that gets no requests.
    """
    findings = [scaling(scaled) for _, scaled in variants]
    worst = next((finding for so in (False, True) for finding in findings if finding.so is so), findings[0])
    messages = zip(variants, findings, strict=True)
    message = "; ".join(f"variant {variant.spec_name}: {finding.message}" for (variant, _), finding in messages)
    return replace(worst, message=bounded(message, _LONGEST))


def variant_scaling(scaled: ScaledMember, desired: int) -> ScalingStatus:
    """Return the scaling of one variant, with its last change only."""
    status = scaling_status(scaled, desired)
    return status.model_copy(update={"history": status.history[:1]})


def largest_scaling(parts: Sequence[ScalingStatus], finding: Finding) -> ScalingStatus:
    """Return the scaling of a model: the replicas of its largest variant. The fields of the spec count for each
    variant, too, so that an autoscaler which reads one and sets the other sees what it did.
    """
    changes = [part.last_scale_time for part in parts if part.last_scale_time is not None]
    return ScalingStatus(
        replicas=max((part.replicas for part in parts), default=0),
        desired=max((part.desired for part in parts), default=0),
        reason=str(finding.reason or Reason.NO_SIGNALS),
        message=f"{quantity(len(parts), 'variant')}, each with replicas of its own; {finding.message}"[:_LONGEST],
        last_scale_time=max(changes, default=None),
    )
