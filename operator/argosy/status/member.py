"""The status of a valid member: what its kind reports, with what is measured and decided of it alone."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from argosy.api import Ensemble, InferenceModel
from argosy.api.status import InferenceModelStatus, Status
from argosy.api.statusparts import PreemptionStatus
from argosy.autoscaling.bottlenecks.diagnose import BottleneckReport
from argosy.autoscaling.decision import Allocation, Decision
from argosy.autoscaling.pool.language import LanguageReport
from argosy.autoscaling.pool.variants import VariantsReport
from argosy.planning.demand.measured import MeasuredFootprint
from argosy.planning.rollouts.member import MemberRollout
from argosy.planning.variants import RoutedModel, VariantModel
from argosy.status.ensemble import ensemble_status
from argosy.status.findings.bottleneck import bottleneck_status
from argosy.status.findings.language import language_status
from argosy.status.findings.scaling import ScaledMember
from argosy.status.measured.footprint import restored, with_measured
from argosy.status.model import model_status
from argosy.status.progress.pool_progress import PoolProgress
from argosy.status.rollout import rollout_status
from argosy.status.routed import SeparateVariants, routed_status


class Addresses(NamedTuple):
    """Where clients reach a resource: the URL and the gRPC address, and the labels of its Pods; None where the servers'
    own addresses count. `activated`: whether an activator answers there while the resource has no replica.
    """

    url: str | None
    grpc_address: str
    selector: str | None
    activated: bool = False

    def on(self, status: Status, previous: Status | None) -> Status:
        """Return the status with them. They appear once something answers there, and then stay: clients keep them."""
        addresses: dict[str, str] = {}
        if self.url is not None:
            answered = previous is not None and previous.url == self.url
            answers = status.available_replicas > 0 or answered or self.activated
            addresses["url"] = self.url if answers else ""
            addresses["grpc_address"] = self.grpc_address if answers else ""
        if self.selector is not None:
            addresses["selector"] = self.selector
        return status.model_copy(update=addresses) if addresses else status


class MemberFacts(NamedTuple):
    """What is decided and measured of one member. `variants`: those of a routed model, `report` what is measured of
    them, `separate` what is decided where they have servers of their own. `gains`: what lost places to it.
    """

    allocation: Allocation | None
    decision: Decision | None
    bottleneck: BottleneckReport | None
    language: LanguageReport | None
    footprint: MeasuredFootprint | None
    rollout: MemberRollout | None
    lost_to: PreemptionStatus | None
    gains: tuple[PreemptionStatus, ...]
    addresses: Addresses
    variants: Sequence[VariantModel] = ()
    report: VariantsReport | None = None
    separate: SeparateVariants | None = None


def member_status(
    member: InferenceModel | Ensemble,
    progress: PoolProgress,
    facts: MemberFacts,
    previous: Status | None,
    now: datetime,
) -> Status:
    """Return the status of a valid member of a pool. `previous` was written last."""
    status = _by_kind(member, progress, facts, previous, now)
    reported: dict[str, object] = {
        "bottleneck": bottleneck_status(facts.bottleneck),
        "preempted_by": facts.lost_to,
        "preempted": facts.gains,
    }
    if facts.rollout is not None:
        reported["rollout"] = rollout_status(facts.rollout)
    if isinstance(status, InferenceModelStatus) and isinstance(member, InferenceModel):
        reported["footprint"] = with_measured(status.footprint, facts.footprint or restored(previous))
    if isinstance(member, InferenceModel | RoutedModel):
        reported["language"] = language_status(facts.language)
    return facts.addresses.on(status.model_copy(update=reported), previous)


def _by_kind(
    member: InferenceModel | Ensemble,
    progress: PoolProgress,
    facts: MemberFacts,
    previous: Status | None,
    now: datetime,
) -> Status:
    before = previous.conditions if previous is not None else ()
    scaled = ScaledMember.of(member, facts.allocation, facts.decision, previous)
    if isinstance(member, InferenceModel):
        return model_status(member, progress, before, scaled, now)
    if isinstance(member, RoutedModel):
        return routed_status(member, facts.variants, progress, before, scaled, facts.report, now, facts.separate)
    return ensemble_status(member, progress, before, scaled, now)
