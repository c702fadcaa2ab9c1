"""One round of a pool: its signals become decisions on each member that scales, and a diagnosis of each bottleneck."""

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from msgspec import structs

from argosy.api import Ensemble, InferenceModel, Member
from argosy.api.conditions import Reason
from argosy.autoscaling.bottlenecks import diagnose as diagnosis
from argosy.autoscaling.bottlenecks.subjects import levers_of, subjects
from argosy.autoscaling.decide import MemberDecision, decide
from argosy.autoscaling.decision import Allocation, Decision, SpareCapacity
from argosy.autoscaling.explain import joined, own_fault, sentence
from argosy.autoscaling.memory import MemberMemory, Memory
from argosy.autoscaling.metrics.signals import PoolSignals, Signals
from argosy.autoscaling.policy import Policy
from argosy.autoscaling.pool.allocations import scaled_resource, with_planned_instances
from argosy.autoscaling.pool.footprints import MeasuredModel, measured_footprints
from argosy.autoscaling.pool.grants import Grant, served
from argosy.autoscaling.pool.language import language_reports
from argosy.autoscaling.pool.memory import PoolMemory, report
from argosy.autoscaling.pool.regimes import fleet_regimes
from argosy.autoscaling.pool.variants import routed_signals, variants_reports
from argosy.autoscaling.stage import Stage
from argosy.planning.demand.runs import runs_of
from argosy.planning.facts import CurrentServer
from argosy.planning.variants import RoutedModel

log = logging.getLogger(__name__)

_NO_POLICY, _UNDIAGNOSED = Policy(), diagnosis.BottleneckState()


@dataclass(frozen=True, slots=True)
class PoolInputs:
    """The inputs of a pool's decisions, in addition to its signals. The mappings are by identity.

    `members`: its models and ensembles as declared, with their `statuses`; `policies` of those that scale, their
    `allocations` as they were planned, and the `grants` of that plan; `servers`: those of the plan. `products`: of
    their GPUs, by server. `activator_error`: why requests for a member without replicas would not be queued, so that
    none is scaled to zero; empty if they would.
    """

    members: tuple[Member, ...] = ()
    policies: Mapping[str, Policy] = field(default_factory=dict)
    allocations: Mapping[str, Allocation] = field(default_factory=dict)
    grants: Mapping[str, Grant] = field(default_factory=dict)
    statuses: Mapping[str, object] = field(default_factory=dict)
    servers: tuple[CurrentServer, ...] = ()
    products: Mapping[str, str] = field(default_factory=dict)
    activator_error: str = "nothing holds requests here"


def decide_pool(inputs: PoolInputs, signals: PoolSignals, memory: PoolMemory, now: datetime) -> PoolMemory:
    """Return the memory for the next round, with the decisions to report. Members that no longer exist are dropped."""
    pool_round = _Round(inputs, signals, memory, now)
    members, decisions = pool_round.decide()
    reports = {name: report(memory.reports.get(name), decision, now) for name, decision in decisions.items()}
    measured: dict[str, Signals | None] = {
        member.identity: signals.members.get(member.name)
        for member in inputs.members
        if isinstance(member, InferenceModel)
    }
    routed: dict[str, Signals | None] = {
        model.identity: routed_signals(model, signals) for model in inputs.members if isinstance(model, RoutedModel)
    }
    language = language_reports(memory.language, measured | routed, now)
    models = [model for model in inputs.members if isinstance(model, RoutedModel)]
    own: dict[str, Signals | None] = {model.identity: signals.members.get(model.name) for model in models}
    variants = variants_reports(memory.variants, own, now)
    separate = [(model, own[model.identity]) for model in models if model.is_separate]
    regimes = fleet_regimes(memory.regimes, separate, now)
    footprints = measured_footprints(memory.footprints, _measured_models(inputs, signals))
    return PoolMemory(members, pool_round.diagnose(decisions), reports, language, variants, regimes, footprints)


def _measured_models(inputs: PoolInputs, signals: PoolSignals) -> Iterator[MeasuredModel]:
    for member in inputs.members:
        if isinstance(member, InferenceModel):
            status = inputs.statuses.get(member.identity)
            yield MeasuredModel(member, status, signals.members.get(member.name), inputs.products)


@dataclass(frozen=True, slots=True)
class _Round:
    inputs: PoolInputs
    signals: PoolSignals
    memory: PoolMemory
    now: datetime

    def decide(self) -> tuple[dict[str, MemberMemory], dict[str, Decision]]:
        """Return the memory of each member that was decided on by itself, and all decisions, by identity. The models of
        an ensemble are decided with it; if several ensembles run a model, the largest allocation counts.
        """
        memories: dict[str, MemberMemory] = {}
        decisions: dict[str, Decision] = {}
        for member, models in self._scaled():
            if member.identity not in decisions:
                decision, memories[member.identity] = self._decided(member, models)
                stages = {model.identity: decision.stages[model.name] for model in models}
                for name, new in ({member.identity: decision.own} | stages).items():
                    if name in self.inputs.policies:
                        decisions[name] = max(decisions.get(name, new), new, key=_size)
        return memories, {name: self._explained(name, decision) for name, decision in decisions.items()}

    def _scaled(self) -> Iterator[tuple[Member, list[InferenceModel]]]:
        """Yield the members that scale, ensembles first, each ensemble with its models."""
        models = {member.name: member for member in self.inputs.members if isinstance(member, InferenceModel)}
        runs = runs_of(member for member in self.inputs.members if isinstance(member, Ensemble))
        for member in sorted(self.inputs.members, key=lambda member: (isinstance(member, InferenceModel), member.name)):
            if member.identity in self.inputs.policies:
                stages = [models[name] for name in runs.get(member.name, ()) if name in models]
                yield member, [self._regime(member, stages)] if isinstance(member, RoutedModel) and stages else stages

    def _regime(self, routed: RoutedModel, variants: list[InferenceModel]) -> InferenceModel:
        """Return the variant that new requests go to, by which a routed model is scaled: the others wait for less."""
        signals = self.signals.members.get(routed.name)
        regimes = {variant.variant: variant.regime for variant in signals.variants} if signals is not None else {}
        return max(variants, key=lambda variant: regimes.get(variant.served_name, 0))

    def _decided(self, member: Member, models: list[InferenceModel]) -> tuple[MemberDecision, MemberMemory]:
        """Return the decision on a member and its memory. A fault of Argosy's own changes nothing of this member, says
        so, and leaves of its memory what a restart would, as that may be what is wrong.
        """
        try:
            return self._decide(member, models)
        except Exception as error:
            log.exception("%s: nothing can be decided on what was measured", member.identity)
            why = own_fault(error)
            memory = self.memory.members.get(member.identity, MemberMemory()).restarted()
            stages = {
                model.name: self._retained(model, memory.stages.get(model.name, Memory()), why) for model in models
            }
            return MemberDecision(self._retained(member, memory.own, why), stages), memory

    def _retained(self, member: Member, memory: Memory, why: str) -> Decision:
        """Return the decision that the allocation stays, and why."""
        allocation = self._allocation(member.identity)
        message = sentence(allocation, allocation, why, "")
        return Decision(
            allocation, allocation.replicas, Reason.NO_SIGNALS, message, change=memory.change, lowering=memory.lowering
        )

    def _decide(self, member: Member, models: list[InferenceModel]) -> tuple[MemberDecision, MemberMemory]:
        policy, signals = self._policy(member), self.signals
        named = [(query.name, signals.queries.get((member.name, query.name))) for query in policy.targets.queries]
        return decide(
            policy,
            self._allocation(member.identity),
            signals.members.get(member.name),
            self._spare_capacity(member.identity),
            self.memory.members.get(member.identity, MemberMemory()),
            self.now,
            stages={model.name: self._stage(model) for model in models},
            queries={name: value for name, value in named if value is not None},
            queued=sum(signals.queued.get(queue.name, 0) for queue in (member, *models)),
        )

    def _stage(self, model: InferenceModel) -> Stage:
        signals = self.signals.members.get(model.name)
        return Stage(
            self._policy(model), self._allocation(model.identity), signals, self._spare_capacity(model.identity)
        )

    def _policy(self, member: Member) -> Policy:
        """Return the policy with what servers have loaded of a model, and with one replica that stays if no activator
        would queue requests.
        """
        name, inputs = member.identity, self.inputs
        policy = inputs.policies.get(name, _NO_POLICY)
        bounds, replicas = policy.bounds, self._allocation(name).replicas
        if inputs.activator_error and replicas and bounds.max_replicas and not bounds.min_replicas:
            policy = replace(policy, bounds=replace(bounds, min_replicas=1, min_by=""))
        if isinstance(member, Ensemble):
            return policy
        return replace(policy, served=served(member, inputs.statuses.get(name), inputs.grants.get(name)))

    def _allocation(self, name: str) -> Allocation:
        """Return the allocation as last decided, without the replicas that the plan did not place."""
        last, grant = self.memory.reports.get(name), self.inputs.grants.get(name)
        allocation = last.decision.allocation if last else self.inputs.allocations.get(name, Allocation())
        if grant is None or not grant.spare.missing or allocation.replicas != grant.requested:
            return allocation
        return structs.replace(allocation, replicas=min(allocation.replicas, grant.placed))

    def _spare_capacity(self, name: str) -> SpareCapacity:
        """Return the spare capacity of the last plan, less the replicas that were decided on since."""
        grant = self.inputs.grants.get(name)
        if grant is None or grant.spare.replicas is None:
            return grant.spare if grant is not None else SpareCapacity()
        taken = max(0, self._allocation(name).replicas - grant.placed)
        return structs.replace(grant.spare, replicas=max(0, grant.spare.replicas - taken))

    def _explained(self, name: str, decision: Decision) -> Decision:
        """Return the decision with all errors of its inputs in its sentence."""
        policy, resource = self.inputs.policies[name], name.rpartition("/")[2]
        errors = [self.signals.error] if decision.reason is Reason.NO_SIGNALS else []
        for query in policy.targets.queries:
            error = self.signals.query_errors.get((resource, query.name), "")
            errors.append(f"query {query.name} cannot be used: {error}" if error else "")
        if self.inputs.activator_error and not policy.bounds.min_replicas and decision.allocation.replicas == 1:
            errors.append(f"it does not go to zero: {self.inputs.activator_error}")
        return structs.replace(decision, message=joined(decision.message, *errors))

    def diagnose(self, decisions: Mapping[str, Decision]) -> dict[str, diagnosis.BottleneckState]:
        """Return the memory of each member's bottleneck, by identity."""
        members, policies, memories = self.inputs.members, self.inputs.policies, self.memory.bottlenecks
        allocations = {name: decision.allocation for name, decision in decisions.items()}
        statuses = self.inputs.statuses
        scaled = [
            scaled_resource(member, allocations.get(member.identity))
            if member.identity in policies
            else with_planned_instances(member, statuses.get(member.identity))
            for member in members
        ]
        levers = {member.name: levers_of(policies.get(member.identity, _NO_POLICY).bounds) for member in members}
        measured = subjects(scaled, self.signals, self.inputs.servers, levers)
        named = [(member.identity, measured.get(member.name)) for member in members]
        return {name: diagnosis.diagnose(own, memories.get(name, _UNDIAGNOSED), self.now) for name, own in named}


def _size(decision: Decision) -> tuple[int, int]:
    return decision.allocation.instances, decision.allocation.replicas
