"""An ensemble's decision: its models run together, so replicas are of all of them; the one that limits gets instances.

The time that a latency target leaves is shared among the models as their own times are, as though they ran one after
the other: where some run beside each other, that is on the safe side.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from msgspec import structs

from argosy.api.conditions import Reason
from argosy.autoscaling.case import NO_QUERIES, NOTHING_SAID, Case, bounded, decided, learnt, unusable
from argosy.autoscaling.decision import Allocation, Decision, Room
from argosy.autoscaling.learning.memory import Memory
from argosy.autoscaling.metrics.signals import Signals
from argosy.autoscaling.outofmemory import Lowered, lowered
from argosy.autoscaling.pace import Paced, doubted, fewer_instances, paced, remembered
from argosy.autoscaling.policy import Policy
from argosy.autoscaling.setting import in_place
from argosy.autoscaling.wanted.replicas import Wanted, wanted
from argosy.autoscaling.zero import to_or_from_zero

_ANYWHERE, _NOTHING_YET = Room(), Memory()


@dataclass(frozen=True, slots=True)
class Stage:
    """One model of it. Of its policy the instances, the window and the targets other than latency count; its
    allocation's replicas are the ensemble's. `room`: its own instances.
    """

    policy: Policy
    allocation: Allocation
    signals: Signals | None
    room: Room = _ANYWHERE


@dataclass(frozen=True, slots=True)
class EnsembleMemory:
    """Of the ensemble, and of each of its models by name."""

    whole: Memory = _NOTHING_YET
    stages: Mapping[str, Memory] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class EnsembleDecision:
    """Of the ensemble, and of each of its models by name. `limiting`: the model that asks for most, where one does."""

    whole: Decision
    stages: Mapping[str, Decision]
    limiting: str = ""


def decide_ensemble(
    policy: Policy,
    allocation: Allocation,
    signals: Signals | None,
    stages: Mapping[str, Stage],
    room: Room,
    memory: EnsembleMemory,
    now: datetime,
    *,
    queries: Mapping[str, float] = NO_QUERIES,
    held: int = 0,
) -> tuple[EnsembleDecision, EnsembleMemory]:
    """Return what the ensemble and each of its models are to become, and what the next decision has to know.

    Its own `signals` say whether it is in use and how its targets are held, those of its models why. Where a model's
    are missing, or not of now, nothing is taken away.
    """
    case = Case(policy, allocation, room, now, queries, held)
    whole, usable = learnt(policy, allocation, signals, memory.whole.since(now), now)
    parts = {
        name: _part(policy, stage, memory.stages.get(name, _NOTHING_YET).since(now), allocation, now)
        for name, stage in stages.items()
    }
    parts = _shared(policy, parts)
    asked = {name: each.asked(case) for name, each in parts.items()}
    decision, whole, limiting = _whole(case, usable, whole, parts, asked)
    down = decision.allocation.replicas <= decision.desired and fewer_instances(policy, whole, now)
    replicas = decision.allocation.replicas
    settled = {name: each.set(case, replicas, asked[name], down=down) for name, each in parts.items()}
    found = EnsembleDecision(decision, {name: each for name, (each, _) in settled.items()}, limiting)
    return found, EnsembleMemory(whole, {name: each for name, (_, each) in settled.items()})


@dataclass(frozen=True, slots=True)
class _Part:
    """A stage with what it learnt; `signals` None where they are of no use, `why` then says so."""

    policy: Policy
    before: Allocation
    room: Room
    signals: Signals | None
    why: str
    less: Lowered

    def asked(self, case: Case) -> Wanted | None:
        if self.signals is None:
            return None
        return wanted(
            self.policy, self.less.allocation, self.signals, self.room, self.less.memory, {}, case.held, case.now
        )

    def set(self, case: Case, replicas: int, asked: Wanted | None, *, down: bool) -> tuple[Decision, Memory]:
        """Its decision, once the ensemble's replicas are known."""
        own = Case(self.policy, self.before, self.room, case.now, {}, 0)
        present, memory = self.less.allocation, self.less.memory
        if asked is None or self.signals is None:
            reason = Reason.STEADY if self.less.why else Reason.NO_SIGNALS
            pace, after = Paced(replicas, replicas, reason), structs.replace(present, replicas=replicas)
            return decided(own, after, pace, self.less.why or self.why or NOTHING_SAID, None, memory)
        memory = doubted(self.policy, present, asked, self.signals, memory, case.now)
        memory = remembered(self.policy, present, memory, asked, case.now)
        down = down and memory.anew and not self.signals.unmeasured
        after = in_place(present, replicas, self.signals, asked, memory, down=down)
        why = self.less.beside(asked.need.because)
        return decided(own, after, Paced(replicas, asked.up), why, asked.need, memory)


def _part(policy: Policy, stage: Stage, memory: Memory, whole: Allocation, now: datetime) -> _Part:
    """With the ensemble's bounds of replicas, and its startup time."""
    own = stage.policy.bounds
    bounds = replace(policy.bounds, devices=own.devices, min_instances=own.min_instances,
        max_instances=own.max_instances, max_window_s=own.max_window_s, max_batch=own.max_batch,
        smaller_batches=own.smaller_batches)  # fmt: skip
    mine = Policy(bounds, stage.policy.targets, policy.pace, policy.startup_s, stage.policy.served)
    before = structs.replace(stage.allocation, replicas=whole.replicas)
    memory, usable = learnt(mine, before, stage.signals, memory, now)
    present = bounded(mine, before)
    less = lowered(mine, present, usable, memory, now) if usable is not None else Lowered(present, memory)
    return _Part(mine, before, stage.room, usable, unusable(stage.signals, now), less)


def _shared(policy: Policy, parts: Mapping[str, _Part]) -> dict[str, _Part]:
    """Each with its share of every latency that the ensemble is to hold."""
    times = {name: _alone(each) for name, each in parts.items()}
    known = [time for time in times.values() if time is not None]
    if not known:
        return dict(parts)
    typical = sum(known) / len(known)
    filled = {name: typical if time is None else time for name, time in times.items()}
    total = sum(filled.values())
    return {name: _limited(policy, each, filled[name] / total) for name, each in parts.items()}


def _alone(part: _Part) -> float | None:
    service = part.less.memory.service
    return None if service is None else service.seconds(1.0)


def _limited(policy: Policy, part: _Part, share: float) -> _Part:
    targets = part.policy.targets
    latency = {name: limit * share for name, limit in policy.targets.latency.items()}
    stricter = {name: min(limit, targets.latency.get(name, limit)) for name, limit in latency.items()}
    targets = replace(targets, latency={**targets.latency, **stricter})
    return replace(part, policy=replace(part.policy, targets=targets))


def _whole(
    case: Case, signals: Signals | None, memory: Memory, parts: Mapping[str, _Part], asked: Mapping[str, Wanted | None]
) -> tuple[Decision, Memory, str]:
    """The replicas: of what its own targets ask for and what each model does, the most."""
    policy, now = case.policy, case.now
    present = bounded(policy, case.before)
    zero = to_or_from_zero(policy, case.before.replicas, memory, case.held)
    if zero is not None:
        pace = Paced(zero.replicas, zero.replicas, zero.reason)
        return *decided(case, structs.replace(present, replicas=zero.replicas), pace, zero.why, None, memory), ""
    own = None
    if signals is not None:
        own = wanted(policy, present, signals, case.room, memory, case.queries, case.held, case.now)
    every = {**asked, "": own}
    known = {name: each for name, each in every.items() if each is not None}
    if not known:
        pace = Paced(present.replicas, present.replicas, Reason.NO_SIGNALS)
        return *decided(case, present, pace, unusable(signals, now) or NOTHING_SAID, None, memory), ""
    limiting = max(known, key=lambda name: (known[name].up, _use(known[name]), known[name].down))
    most = known[limiting]
    blind = signals is None or any(each.signals is None for each in parts.values())
    down = max(max(each.down for each in known.values()), present.replicas if blind else 0)
    most = structs.replace(most, down=down)
    memory = remembered(policy, present, memory, most, now)
    pace = paced(policy, present, case.room, memory, most, now)
    because = f"{limiting}: {most.need.because}" if limiting else most.need.because
    decision, memory = decided(case, structs.replace(present, replicas=pace.replicas), pace, because, most.need, memory)
    return decision, memory, limiting


def _use(wanted: Wanted) -> float:
    """Of what one replica holds at its best."""
    return wanted.load.rate / wanted.ladder[-1].rate if wanted.ladder else 0.0
