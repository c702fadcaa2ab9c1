"""One round of a pool: its signals become decisions on each member that scales, and what is told to hold each up."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TypeVar

from msgspec import structs

from argosy.api import Ensemble, InferenceModel
from argosy.api.conditions import Reason
from argosy.autoscaling.bottlenecks import diagnose as diagnosis
from argosy.autoscaling.bottlenecks.subject import Lever
from argosy.autoscaling.bottlenecks.subjects import subjects
from argosy.autoscaling.case import NO_QUERIES
from argosy.autoscaling.decide import decide
from argosy.autoscaling.decision import Allocation, Decision, Room
from argosy.autoscaling.ensemble import EnsembleMemory, Stage, decide_ensemble
from argosy.autoscaling.learning.memory import Memory
from argosy.autoscaling.metrics.signals import PoolSignals
from argosy.autoscaling.policy import Policy
from argosy.autoscaling.pool.forms import scaled_form
from argosy.autoscaling.pool.from_spec import Member, scales
from argosy.autoscaling.pool.scene import PoolMemory, PoolScene
from argosy.autoscaling.pool.told import beside, told
from argosy.planning.demand.grouping import runs_of

Value = TypeVar("Value")

_NEW, _NEW_ENSEMBLE, _ANYWHERE = Memory(), EnsembleMemory(), Room()


def decide_pool(scene: PoolScene, signals: PoolSignals, memory: PoolMemory, now: datetime) -> PoolMemory:
    """Return all decisions of one pool, and what is known after them. Those of which nothing material changed are told
    as they were. What is no longer there is forgotten.
    """
    queries, troubles = _by_member(signals.queries), _by_member(signals.query_troubles)
    pool_round = _Round(scene, signals, queries, troubles, _failing(signals), memory, now)
    models, ensembles, decisions = pool_round.decided()
    said = {name: told(memory.told.get(name), each, now) for name, each in decisions.items()}
    names = {member.identity for member in scene.members}
    kept = {name: each for name, each in memory.bottlenecks.items() if name in names}
    return PoolMemory(models, ensembles, kept | pool_round.diagnosed(decisions), said)


def _by_member(found: Mapping[tuple[str, str], Value]) -> dict[str, dict[str, Value]]:
    """By resource name, then by the query's own."""
    grouped: dict[str, dict[str, Value]] = {}
    for (member, query), value in found.items():
        grouped.setdefault(member, {})[query] = value
    return grouped


def _failing(signals: PoolSignals) -> dict[str, tuple[int, ...]]:
    """By resource name, the versions that ran out of memory of late."""
    found: dict[str, tuple[int, ...]] = {}
    for (member, version), each in sorted(signals.versions.items()):
        if each.out_of_memory:
            found[member] = (*found.get(member, ()), version)
    return found


@dataclass(frozen=True, slots=True)
class _Round:
    """`queries` and `troubles` are the signals' own, by resource name, and so are the versions that are `failing`."""

    scene: PoolScene
    signals: PoolSignals
    queries: Mapping[str, Mapping[str, float]]
    troubles: Mapping[str, Mapping[str, str]]
    failing: Mapping[str, tuple[int, ...]]
    memory: PoolMemory
    now: datetime

    def decided(self) -> tuple[dict[str, Memory], dict[str, EnsembleMemory], dict[str, Decision]]:
        """Return what is remembered of models and of ensembles, and the decisions."""
        models: dict[str, Memory] = {}
        ensembles: dict[str, EnsembleMemory] = {}
        decisions: dict[str, Decision] = {}
        for ensemble, stages in self._ensembles():
            found, remembered = self._ensemble(ensemble, stages)
            ensembles[ensemble.identity] = remembered
            decisions |= _larger(decisions, found)
        for member in self.scene.members:
            policy = self.scene.policies.get(member.identity)
            if policy is not None and member.identity not in decisions:
                decisions[member.identity], models[member.identity] = self._member(member, policy)
        return models, ensembles, {name: self._said(name, each) for name, each in decisions.items()}

    def _ensembles(self) -> Iterator[tuple[Ensemble, tuple[InferenceModel, ...]]]:
        """The ensembles that scale, with their models."""
        models = {each.name: each for each in self.scene.members if isinstance(each, InferenceModel)}
        every = [each for each in self.scene.members if isinstance(each, Ensemble)]
        runs = runs_of(every)
        for ensemble in sorted(every, key=lambda each: each.name):
            names = runs[ensemble.name]
            if scales(ensemble) and ensemble.identity in self.scene.policies and models.keys() >= set(names):
                yield ensemble, tuple(models[name] for name in names)

    def _ensemble(
        self, ensemble: Ensemble, models: tuple[InferenceModel, ...]
    ) -> tuple[dict[str, Decision], EnsembleMemory]:
        name = ensemble.identity
        known = self.memory.ensembles.get(name, _NEW_ENSEMBLE)
        found, remembered = decide_ensemble(
            self._policy(ensemble, self.scene.policies[name]),
            self._allocation(name),
            self.signals.members.get(ensemble.name),
            {each.name: self._stage(each) for each in models},
            self._room(name),
            known,
            self.now,
            queries=self.queries.get(ensemble.name, NO_QUERIES),
            held=sum(self.signals.held.get(each.name, 0) for each in (ensemble, *models)),
        )
        decisions: dict[str, Decision] = {name: found.whole}
        decisions |= {each.identity: found.stages[each.name] for each in models if each.identity in self.scene.policies}
        return decisions, remembered

    def _stage(self, model: InferenceModel) -> Stage:
        policy = self.scene.policies.get(model.identity) or Policy()
        signals = self.signals.members.get(model.name)
        return Stage(
            self._of_served(model, policy), self._allocation(model.identity), signals, self._room(model.identity)
        )

    def _member(self, member: Member, policy: Policy) -> tuple[Decision, Memory]:
        return decide(
            self._of_served(member, self._policy(member, policy)),
            self._allocation(member.identity),
            self.signals.members.get(member.name),
            self._room(member.identity),
            self.memory.models.get(member.identity, _NEW),
            self.now,
            queries=self.queries.get(member.name, NO_QUERIES),
            held=self.signals.held.get(member.name, 0),
        )

    def _policy(self, member: Member, policy: Policy) -> Policy:
        """With a replica that stays where nobody would hold its requests."""
        bounds = policy.bounds
        if not self.scene.unheld or not self._allocation(member.identity).replicas or not bounds.max_replicas:
            return policy
        if bounds.min_replicas:
            return policy
        return replace(policy, bounds=replace(bounds, min_replicas=1, min_by=""))

    def _of_served(self, member: Member, policy: Policy) -> Policy:
        """With what is known of what servers have of it."""
        served = self.scene.served.get(member.identity)
        if served is None:
            return policy
        return replace(policy, served=replace(served, failing=self.failing.get(member.name, ())))

    def _allocation(self, name: str) -> Allocation:
        """What it has: what was decided last, without the replicas that the plan found no place for."""
        told = self.memory.told.get(name)
        given = self.scene.allocations.get(name, Allocation())
        allocation = told.decision.allocation if told is not None else given
        grant = self.scene.grants.get(name)
        if grant is None or not grant.room.missing or allocation.replicas != grant.asked:
            return allocation
        return structs.replace(allocation, replicas=min(allocation.replicas, grant.placed))

    def _room(self, name: str) -> Room:
        """What is left of what the last plan had beyond what it placed."""
        grant = self.scene.grants.get(name)
        if grant is None or grant.room.replicas is None:
            return grant.room if grant is not None else _ANYWHERE
        taken = max(0, self._allocation(name).replicas - grant.placed)
        return structs.replace(grant.room, replicas=max(0, grant.room.replicas - taken))

    def _said(self, name: str, decision: Decision) -> Decision:
        """With what could not be had of what it is to follow."""
        own = self.troubles.get(name.rpartition("/")[2], {})
        troubles = [f"query {query} cannot be used: {why}" for query, why in sorted(own.items())]
        if decision.reason is Reason.NO_SIGNALS and self.signals.trouble:
            troubles.insert(0, self.signals.trouble)
        if self._is_kept(name, decision):
            troubles.append(f"it does not go to zero: {self.scene.unheld}")
        return beside(decision, troubles)

    def _is_kept(self, name: str, decision: Decision) -> bool:
        """Whether it would keep a replica however idle it were, since nobody would hold its requests."""
        policy = self.scene.policies.get(name)
        may_be_zero = policy is not None and not policy.bounds.min_replicas
        return may_be_zero and decision.allocation.replicas == 1 and bool(self.scene.unheld)

    def diagnosed(self, decisions: Mapping[str, Decision]) -> dict[str, diagnosis.Memory]:
        """Return what is known of what holds each member up."""
        scene = self.scene
        served = [scaled_form(each, self._decided(each, decisions), 0) for each in scene.members]
        levers = {each.name: _levers(scene.policies.get(each.identity)) for each in scene.members}
        found = subjects(served, self.signals, scene.servers, levers)
        return {
            each.identity: diagnosis.diagnose(
                found.get(each.name), self.memory.bottlenecks.get(each.identity, diagnosis.Memory()), self.now
            )
            for each in scene.members
        }

    def _decided(self, member: Member, decisions: Mapping[str, Decision]) -> Allocation | None:
        decision = decisions.get(member.identity)
        return decision.allocation if decision is not None else None


def _larger(known: Mapping[str, Decision], found: Mapping[str, Decision]) -> dict[str, Decision]:
    """Of two decisions on a model that several ensembles run, the one that gives it more."""

    def size(decision: Decision) -> tuple[int, int]:
        return decision.allocation.instances, decision.allocation.replicas

    return {name: max(known.get(name, each), each, key=size) for name, each in found.items()}


def _levers(policy: Policy | None) -> frozenset[Lever]:
    """What is decided of a member by itself."""
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
