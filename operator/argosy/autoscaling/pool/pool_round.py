"""One round of a pool: its signals become decisions on each member that scales, and a diagnosis of each bottleneck."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TypeVar

from msgspec import structs

from argosy.api import Ensemble, InferenceModel
from argosy.api.conditions import Reason
from argosy.autoscaling.bottlenecks import diagnose as diagnosis
from argosy.autoscaling.bottlenecks.subjects import Lever, subjects
from argosy.autoscaling.decide import NO_QUERIES, NO_STAGES, MemberDecision, decide
from argosy.autoscaling.decision import Allocation, Decision, SpareCapacity
from argosy.autoscaling.explain import joined
from argosy.autoscaling.memory import MemberMemory
from argosy.autoscaling.metrics.signals import PoolSignals
from argosy.autoscaling.policy import Policy
from argosy.autoscaling.pool.from_spec import Member, scales
from argosy.autoscaling.pool.inputs import PoolInputs, PoolMemory
from argosy.autoscaling.pool.reported import reported
from argosy.autoscaling.pool.scaled_resources import scaled_resource
from argosy.autoscaling.stage import ANYWHERE, Stage
from argosy.planning.demand.grouping import runs_of

Value = TypeVar("Value")


def decide_pool(inputs: PoolInputs, signals: PoolSignals, memory: PoolMemory, now: datetime) -> PoolMemory:
    """Return all decisions of one pool, and what is known after them. A decision of which nothing material changed is
    reported as it was. What is no longer there is forgotten.
    """
    pool_round = _Round(inputs, signals, _by_member(signals.queries), _by_member(signals.query_errors), memory, now)
    members, decisions = pool_round.decided()
    reports = {name: reported(memory.reports.get(name), decision, now) for name, decision in decisions.items()}
    return PoolMemory(members, pool_round.diagnosed(decisions), reports)


def _by_member(values: Mapping[tuple[str, str], Value]) -> dict[str, dict[str, Value]]:
    """Return them by resource name, then by the query's own."""
    grouped: dict[str, dict[str, Value]] = {}
    for (member, query), value in values.items():
        grouped.setdefault(member, {})[query] = value
    return grouped


@dataclass(frozen=True, slots=True)
class _Round:
    """`queries` and `errors` are the signals' own, by resource name."""

    inputs: PoolInputs
    signals: PoolSignals
    queries: Mapping[str, Mapping[str, float]]
    errors: Mapping[str, Mapping[str, str]]
    memory: PoolMemory
    now: datetime

    def decided(self) -> tuple[dict[str, MemberMemory], dict[str, Decision]]:
        """Return what is known of members, and the decisions, by identity."""
        members: dict[str, MemberMemory] = {}
        decisions: dict[str, Decision] = {}
        for ensemble, models in self._ensembles():
            name = ensemble.identity
            stages = {model.name: self._stage(model) for model in models}
            queued = sum(self.signals.queued.get(member.name, 0) for member in (ensemble, *models))
            decision, members[name] = self._decide(ensemble, self.inputs.policies[name], stages, queued)
            followers: dict[str, Decision] = {
                model.identity: decision.stages[model.name]
                for model in models
                if model.identity in self.inputs.policies
            }
            decisions |= _larger(decisions, {name: decision.own, **followers})
        for member in self.inputs.members:
            policy = self.inputs.policies.get(member.identity)
            if policy is not None and member.identity not in decisions:
                queued = self.signals.queued.get(member.name, 0)
                decision, members[member.identity] = self._decide(member, policy, NO_STAGES, queued)
                decisions[member.identity] = decision.own
        return members, {name: self._explained(name, decision) for name, decision in decisions.items()}

    def _ensembles(self) -> Iterator[tuple[Ensemble, tuple[InferenceModel, ...]]]:
        """Yield the ensembles that scale, with their models."""
        models = {member.name: member for member in self.inputs.members if isinstance(member, InferenceModel)}
        ensembles = [member for member in self.inputs.members if isinstance(member, Ensemble)]
        runs = runs_of(ensembles)
        for ensemble in sorted(ensembles, key=lambda member: member.name):
            names = runs[ensemble.name]
            if scales(ensemble) and ensemble.identity in self.inputs.policies and models.keys() >= set(names):
                yield ensemble, tuple(models[name] for name in names)

    def _decide(
        self, member: Member, policy: Policy, stages: Mapping[str, Stage], queued: int
    ) -> tuple[MemberDecision, MemberMemory]:
        return decide(
            self._of_served(member, self._bounded(member, policy)),
            self._allocation(member.identity),
            self.signals.members.get(member.name),
            self._spare_capacity(member.identity),
            self.memory.members.get(member.identity, MemberMemory()),
            self.now,
            stages=stages,
            queries=self.queries.get(member.name, NO_QUERIES),
            queued=queued,
        )

    def _stage(self, model: InferenceModel) -> Stage:
        policy = self._of_served(model, self.inputs.policies.get(model.identity) or Policy())
        signals = self.signals.members.get(model.name)
        return Stage(policy, self._allocation(model.identity), signals, self._spare_capacity(model.identity))

    def _bounded(self, member: Member, policy: Policy) -> Policy:
        """Return the policy with a replica that stays where nothing would keep its requests."""
        bounds = policy.bounds
        if not self.inputs.unheld or not self._allocation(member.identity).replicas or not bounds.max_replicas:
            return policy
        if bounds.min_replicas:
            return policy
        return replace(policy, bounds=replace(bounds, min_replicas=1, min_by=""))

    def _of_served(self, member: Member, policy: Policy) -> Policy:
        """Return the policy with what servers have loaded of the member."""
        served, signals = self.inputs.served.get(member.identity), self.signals.members.get(member.name)
        if served is None:
            return policy
        return replace(policy, served=replace(served, failing=signals.failing if signals is not None else ()))

    def _allocation(self, name: str) -> Allocation:
        """Return what it has: what was decided last, without the replicas that the plan did not place."""
        report = self.memory.reports.get(name)
        declared = self.inputs.allocations.get(name, Allocation())
        allocation = report.decision.allocation if report is not None else declared
        grant = self.inputs.grants.get(name)
        if grant is None or not grant.spare.missing or allocation.replicas != grant.requested:
            return allocation
        return structs.replace(allocation, replicas=min(allocation.replicas, grant.placed))

    def _spare_capacity(self, name: str) -> SpareCapacity:
        """Return what is left of what the last plan had beyond what it placed."""
        grant = self.inputs.grants.get(name)
        if grant is None or grant.spare.replicas is None:
            return grant.spare if grant is not None else ANYWHERE
        taken = max(0, self._allocation(name).replicas - grant.placed)
        return structs.replace(grant.spare, replicas=max(0, grant.spare.replicas - taken))

    def _explained(self, name: str, decision: Decision) -> Decision:
        """Return the decision whose sentence also says what could not be had."""
        own = self.errors.get(name.rpartition("/")[2], {})
        errors = [f"query {query} cannot be used: {why}" for query, why in sorted(own.items())]
        if decision.reason is Reason.NO_SIGNALS and self.signals.error:
            errors.insert(0, self.signals.error)
        policy = self.inputs.policies.get(name)
        may_be_zero = policy is not None and not policy.bounds.min_replicas
        if may_be_zero and decision.allocation.replicas == 1 and self.inputs.unheld:
            errors.append(f"it does not go to zero: {self.inputs.unheld}")
        return structs.replace(decision, message=joined(decision.message, *errors)) if errors else decision

    def diagnosed(self, decisions: Mapping[str, Decision]) -> dict[str, diagnosis.Memory]:
        """Return what is known of the bottleneck of each member."""
        allocations = {name: decision.allocation for name, decision in decisions.items()}
        served = [scaled_resource(member, allocations.get(member.identity), 0) for member in self.inputs.members]
        levers = {member.name: _levers(self.inputs.policies.get(member.identity)) for member in self.inputs.members}
        measured = subjects(served, self.signals, self.inputs.servers, levers)
        return {
            member.identity: diagnosis.diagnose(
                measured.get(member.name),
                self.memory.bottlenecks.get(member.identity, diagnosis.Memory()),
                self.now,
            )
            for member in self.inputs.members
        }


def _larger(decided_before: Mapping[str, Decision], new: Mapping[str, Decision]) -> dict[str, Decision]:
    """Return, of two decisions on a model that several ensembles run, the one that gives it more."""

    def size(decision: Decision) -> tuple[int, int]:
        return decision.allocation.instances, decision.allocation.replicas

    return {name: max(decided_before.get(name, decision), decision, key=size) for name, decision in new.items()}


def _levers(policy: Policy | None) -> frozenset[Lever]:
    """Return what is decided of a member by itself."""
    if policy is None:
        return frozenset()
    bounds = policy.bounds
    levers = {
        Lever.WINDOW: bounds.max_window_s is not None,
        Lever.INSTANCES: bounds.max_instances > bounds.min_instances,
        Lever.REPLICAS: bounds.max_replicas > bounds.min_replicas,
        Lever.BATCH: bounds.smaller_batches and bounds.max_batch > 1,
    }
    return frozenset(lever for lever, ours in levers.items() if ours)
