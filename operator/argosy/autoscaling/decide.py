"""One member's decision: forecast, capacity, recommendation and stabilization of each stage, and the sentence that says
why. A model is an ensemble of one stage.

The models of an ensemble run together, so replicas are of all of them; the stage that asks for most decides. The time
that a latency target leaves is shared among the stages as their own times are, as though they ran one after the other:
where some run at the same time, that is on the safe side.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from types import MappingProxyType

from msgspec import Struct, structs

from argosy.api.conditions import Reason
from argosy.autoscaling.decision import NO_EJECTION, Allocation, Change, Decision, SpareCapacity
from argosy.autoscaling.ejection import ejection_of
from argosy.autoscaling.estimate import estimated, unusable
from argosy.autoscaling.explain import joined, sentence, service_times, withheld
from argosy.autoscaling.memory import MemberMemory, Memory
from argosy.autoscaling.metrics.signals import Signals
from argosy.autoscaling.policy import Policy
from argosy.autoscaling.recommend import Recommended, ceiling
from argosy.autoscaling.stabilize import Stabilized, from_or_to_zero, recorded, stabilized, unseen_s
from argosy.autoscaling.stage import Part, Stage, part_of

NO_QUERIES: Mapping[str, float] = MappingProxyType({})
NO_STAGES: Mapping[str, Stage] = MappingProxyType({})
_NOTHING_MEASURED = "nothing that was measured says how many replicas it needs"
_NEW = Memory()


class MemberDecision(Struct, frozen=True):
    """The decision on a model or an ensemble, and on each stage of an ensemble by name. `limiting`: the stage that asks
    for most.
    """

    own: Decision
    stages: Mapping[str, Decision]
    limiting: str = ""


def decide(
    policy: Policy,
    allocation: Allocation,
    signals: Signals | None,
    spare: SpareCapacity,
    memory: MemberMemory,
    now: datetime,
    *,
    stages: Mapping[str, Stage] = NO_STAGES,
    queries: Mapping[str, float] = NO_QUERIES,
    queued: int = 0,
) -> tuple[MemberDecision, MemberMemory]:
    """Return what `allocation` is to become, and what the next decision has to know.

    `stages`: the models of an ensemble. `queries`: the values of the policy's queries that are to be had, by name.
    `queued`: requests that wait where nothing serves the member. Signals that are missing, or not of now, take nothing
    away.
    """
    own, usable = estimated(policy, signals, memory.own.until(now), now, queued)
    present = allocation.within(policy.bounds)
    if stages:
        parts = {
            name: _stage_part(policy, stage, memory.stages.get(name, _NEW).until(now), allocation, queued, now)
            for name, stage in stages.items()
        }
        parts = {name: part.recommending({}, now) for name, part in _shared(policy, parts).items()}
    else:
        part = part_of(policy, allocation, usable, unusable(signals, now), spare, own, queued, now)
        parts = {"": part.recommending(queries, now)}
        own, present = parts[""].memory, parts[""].present
    recommendations = {name: part.recommended for name, part in parts.items() if part.recommended is not None}
    if stages and usable is not None:
        own_part = part_of(policy, allocation, usable, "", spare, own, queued, now).recommending(queries, now)
        if own_part.recommended is not None:
            recommendations[""] = own_part.recommended
    member = _Member(policy, allocation, present, spare, parts, recommendations, queued, now)
    return member.decided(own, usable, unusable(signals, now))


def _stage_part(policy: Policy, stage: Stage, memory: Memory, ensemble: Allocation, queued: int, now: datetime) -> Part:
    """Return a stage with the ensemble's bounds of replicas, and its startup time."""
    own = stage.policy.bounds
    bounds = replace(policy.bounds, devices=own.devices, min_instances=own.min_instances,
        max_instances=own.max_instances, max_window_s=own.max_window_s, max_batch=own.max_batch,
        smaller_batches=own.smaller_batches)  # fmt: skip
    mine = Policy(bounds, stage.policy.targets, policy.pace, policy.startup_s, stage.policy.served)
    before = structs.replace(stage.allocation, replicas=ensemble.replicas)
    memory, usable = estimated(mine, stage.signals, memory, now, queued)
    return part_of(mine, before, usable, unusable(stage.signals, now), stage.spare, memory, queued, now)


def _shared(policy: Policy, parts: Mapping[str, Part]) -> dict[str, Part]:
    """Return each part with its share of every latency that the ensemble is to hold."""
    times = {name: service.seconds(1.0) for name, part in parts.items() if (service := part.memory.estimates.service)}
    if not times:
        return dict(parts)
    typical = sum(times.values()) / len(times)
    total = sum(times.get(name, typical) for name in parts)
    return {name: _limited(policy, part, times.get(name, typical) / total) for name, part in parts.items()}


def _limited(policy: Policy, part: Part, share: float) -> Part:
    targets = part.policy.targets
    latency = {name: limit * share for name, limit in policy.targets.latency.items()}
    stricter = {name: min(limit, targets.latency.get(name, limit)) for name, limit in latency.items()}
    targets = replace(targets, latency={**targets.latency, **stricter})
    return structs.replace(part, policy=replace(part.policy, targets=targets))


class _Member(Struct, frozen=True):
    """A member between its recommendations, by stage ("" for its own), and its decision."""

    policy: Policy
    before: Allocation
    present: Allocation
    spare: SpareCapacity
    parts: Mapping[str, Part]
    recommendations: Mapping[str, Recommended]
    queued: int
    now: datetime

    def decided(self, own: Memory, signals: Signals | None, error: str) -> tuple[MemberDecision, MemberMemory]:
        """Return the decision, and what is to be known of it."""
        limiting, most = self._most(signals)
        if most is not None:
            rate = self.parts[limiting].load.rate if limiting in self.parts else 0.0
            own = recorded(self.policy, own, most.down, rate, self.now)
        stabilized_to = from_or_to_zero(
            self.policy, self.before.replicas, own, self.queued, most.up if most is not None else 0
        )
        if stabilized_to is not None:
            because, stabilized_to, most = stabilized_to.why, structs.replace(stabilized_to, why=""), None
        elif most is None:
            stabilized_to, because = self._undecided(error)
        else:
            stabilized_to = stabilized(self.policy, self.present.replicas, self.spare, own, most, self.now)
            because = f"{limiting}: {most.need.because}" if limiting else most.need.because
        down = most is not None and self._may_shrink(own, signals, stabilized_to, most)
        if list(self.parts) == [""]:
            return self._model(own, signals, stabilized_to, most, because, down=down)
        return self._ensemble(own, stabilized_to, most, because, limiting, down=down)

    def _most(self, signals: Signals | None) -> tuple[str, Recommended | None]:
        """Return the recommendation that asks for most, and of which stage; with the largest that any asks to keep."""
        if not self.recommendations:
            return "", None
        limiting = max(
            self.recommendations,
            key=lambda name: (self.recommendations[name].up, self._use(name), self.recommendations[name].down),
        )
        blind = signals is None or any(part.signals is None for part in self.parts.values())
        down = max(recommended.down for recommended in self.recommendations.values())
        down = max(down, self.present.replicas if blind else 0)
        return limiting, structs.replace(self.recommendations[limiting], down=down)

    def _use(self, name: str) -> float:
        """Return the share in use of what one replica holds at its best."""
        part = self.parts.get(name)
        return part.load.rate / part.options[-1].rate if part is not None and part.options else 0.0

    def _undecided(self, error: str) -> tuple[Stabilized, str]:
        lowered = "; ".join(part.lowered.why for part in self.parts.values() if part.lowered.why)
        reason = Reason.STEADY if lowered else Reason.NO_SIGNALS
        replicas = self.present.replicas
        return Stabilized(replicas, replicas, reason), lowered or error or _NOTHING_MEASURED

    def _may_shrink(self, own: Memory, signals: Signals | None, stabilized_to: Stabilized, most: Recommended) -> bool:
        """Return whether instances may go: no replica is to, and a whole window was measured."""
        settled = stabilized_to.replicas <= max(1, self.policy.bounds.min_replicas, most.up, ceiling(most.down))
        seen = own.measured.is_new and unseen_s(self.policy, own, self.now) <= 0
        return settled and seen and signals is not None and not signals.unmeasured

    def _model(
        self,
        memory: Memory,
        signals: Signals | None,
        stabilized_to: Stabilized,
        most: Recommended | None,
        because: str,
        *,
        down: bool,
    ) -> tuple[MemberDecision, MemberMemory]:
        part = self.parts[""]
        after = part.set(stabilized_to.replicas, memory, down=down)
        if most is not None:
            because = part.lowered.before(because)
        ejection = NO_EJECTION
        if most is not None and signals is not None:
            ejection = ejection_of(self.policy, self.present, signals, memory)
        servers = [queue.server for queue in signals.queues] if signals is not None else []
        memory = structs.replace(memory, ejection=ejection, expected=part.expected, holds=part.holds)
        words = joined(sentence(self.before, after, because, stabilized_to.why), withheld(ejection.among(servers)))
        decision, memory = _decision(self, self.before, after, stabilized_to, words, most, memory)
        return MemberDecision(decision, {}), MemberMemory(memory)

    def _ensemble(
        self,
        memory: Memory,
        stabilized_to: Stabilized,
        most: Recommended | None,
        because: str,
        limiting: str,
        *,
        down: bool,
    ) -> tuple[MemberDecision, MemberMemory]:
        after = structs.replace(self.present, replicas=stabilized_to.replicas)
        words = joined(sentence(self.before, after, because, stabilized_to.why))
        if limiting in self.parts:
            part = self.parts[limiting]
            memory = structs.replace(memory, expected=part.expected, holds=part.holds)
        own, memory = _decision(self, self.before, after, stabilized_to, words, most, memory)
        decisions, memories = {}, {}
        for name, part in self.parts.items():
            decisions[name], memories[name] = self._stage(part, stabilized_to.replicas, down=down)
        return MemberDecision(own, decisions, limiting), MemberMemory(memory, memories)

    def _stage(self, part: Part, replicas: int, *, down: bool) -> tuple[Decision, Memory]:
        """Return a stage's decision, once the ensemble's replicas are known."""
        memory, recommended = part.memory, part.recommended
        if recommended is None:
            reason = Reason.STEADY if part.lowered.why else Reason.NO_SIGNALS
            stabilized_to = Stabilized(replicas, replicas, reason)
            because = part.lowered.why or part.error or _NOTHING_MEASURED
        else:
            memory = recorded(part.policy, memory, recommended.down, part.load.rate, self.now)
            memory = structs.replace(memory, expected=part.expected, holds=part.holds)
            stabilized_to = Stabilized(replicas, recommended.up)
            because = part.lowered.before(recommended.need.because)
        after = part.set(replicas, memory, down=down and memory.measured.is_new)
        words = joined(sentence(part.before, after, because, ""))
        return _decision(self, part.before, after, stabilized_to, words, recommended, memory)


def _decision(
    member: _Member,
    before: Allocation,
    after: Allocation,
    stabilized_to: Stabilized,
    message: str,
    most: Recommended | None,
    memory: Memory,
) -> tuple[Decision, Memory]:
    """Return the decision; a change is kept as the newest."""
    reason, need = _reason(member.policy, before, after, stabilized_to), most.need if most is not None else None
    change = memory.change if after == before else Change(member.now, before, after, reason, message)
    service = memory.estimates.service
    decision = Decision(
        after,
        stabilized_to.desired,
        reason,
        message,
        need.metric if need is not None else "",
        need.observed if need is not None else None,
        need.target if need is not None else None,
        _limited_by(stabilized_to, need.limited_by if need is not None else ""),
        change,
        memory.lowering,
        service_times(service, of_engine=memory.estimates.engine is not None) if service is not None else "",
        memory.ejection,
    )
    return decision, structs.replace(memory, change=change, at=member.now)


def _limited_by(stabilized_to: Stabilized, unreachable: str) -> str:
    """Return what keeps it from the target: one that nothing reaches says more than that fewer would be as good."""
    if stabilized_to.reason not in (Reason.AT_MAXIMUM, Reason.LIMITED_BY_CAPACITY):
        return unreachable or stabilized_to.limited_by
    return stabilized_to.limited_by


def _reason(policy: Policy, before: Allocation, after: Allocation, stabilized_to: Stabilized) -> Reason:
    """Return the reason: what limits comes before what changed; a field that decides the replicas, before both."""
    if policy.bounds.fixed_by:
        return Reason.FIXED_REPLICAS
    if stabilized_to.reason in (Reason.NO_SIGNALS, Reason.AT_MAXIMUM, Reason.LIMITED_BY_CAPACITY):
        return stabilized_to.reason
    if (after.replicas, after.instances) > (before.replicas, before.instances):
        return Reason.SCALED_UP
    if (after.replicas, after.instances) < (before.replicas, before.instances):
        return Reason.SCALED_DOWN
    return stabilized_to.reason
