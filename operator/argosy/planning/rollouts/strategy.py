"""The strategy by which a member's candidate revision replaces its stable one, chosen by what is free.

| requested | memory for both everywhere | a further replica finds GPUs | others serve | requests are queued | chosen |
|---|---|---|---|---|---|
| Auto | yes | | | | SurgeInPlace |
| Auto, Surge | once other rollouts have ended | | | | none: it waits for them |
| Auto | no | yes | | | SurgeFreeGpus |
| Auto | no | no | yes | | ReplicaByReplica |
| Auto | no | no | no | yes | Recreate |
| Auto | no | no | no | no | none: the stable revision stays |
| Surge | yes | | | | SurgeInPlace |
| Surge | no | | | | none: it waits for memory |
| Recreate | | | | | Recreate |

An engine that the server opens by a path which all versions share counts as one without memory for both. What is chosen
is in the status, with its reason, before anything that serves is unloaded.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from argosy.api.model.rollout.rollout import Strategy
from argosy.planning.amounts import listed, quantity
from argosy.planning.rollouts.shares import shares_in_words


class RolloutStrategy(StrEnum):
    """How a candidate revision replaces the stable one."""

    SURGE_INPLACE = "SurgeInPlace"
    SURGE_FREE_GPUS = "SurgeFreeGpus"
    REPLICA_BY_REPLICA = "ReplicaByReplica"
    RECREATE = "Recreate"

    @property
    def serves_both(self) -> bool:
        """Whether each server has both revisions, so that it splits its requests by weight."""
        return self is RolloutStrategy.SURGE_INPLACE


@dataclass(frozen=True, slots=True)
class ReplicaCapacity:
    """The capacity for a candidate on one server of its member, once everything else there is as planned.

    `both`: next to the stable revision. `alone`: once that is unloaded. `reached`: requests reach the member there.
    `lacks`: why both do not fit, as a clause. `awaits`: they do once rollouts of other models have ended there.
    """

    both: bool
    alone: bool = True
    reached: bool = True
    lacks: str = ""
    awaits: bool = False


@dataclass(frozen=True, slots=True)
class RolloutFacts:
    """What a strategy is chosen by.

    `replicas`: the member's servers. `free_gpus`: one more replica of the candidate finds GPUs that are free. `queues`:
    an activator queues requests that no server answers. `steps`: the traffic of each step, in thousandths; `mirrored`:
    that of mirroring before them, 0 without; `by_replicas`: without both revisions on a server, replicas divide it.
    `candidate` and `stable`: the revisions, in words.
    """

    requested: Strategy
    replicas: Sequence[ReplicaCapacity]
    free_gpus: bool = False
    queues: bool = False
    steps: tuple[int, ...] = ()
    mirrored: int = 0
    by_replicas: bool = True
    candidate: str = "the new revision"
    stable: str = "the former one"

    @property
    def shares(self) -> tuple[int, ...]:
        """The traffic of each step where no server has both revisions: one step takes the place of mirroring alone."""
        return self.steps or ((self.mirrored,) if self.mirrored else ())


@dataclass(frozen=True, slots=True)
class ChosenStrategy:
    """A strategy, or None while the stable revision stays, and why."""

    strategy: RolloutStrategy | None
    message: str

    def divides_replicas(self, replicas: int) -> bool:
        """Return whether some of so many replicas have the candidate, and the others the stable revision."""
        return not self.loads_both and (replicas > 1 or self.strategy is not RolloutStrategy.RECREATE)

    @classmethod
    def restored(cls, strategy: str, message: str) -> "ChosenStrategy | None":
        """Return the choice that a status has; None if it has none that this release knows."""
        if strategy not in set(RolloutStrategy):
            return None
        return cls(RolloutStrategy(strategy), message)

    @property
    def loads_both(self) -> bool:
        """Whether servers load the candidate next to the stable revision, now or once there is memory."""
        return self.strategy is None or self.strategy.serves_both

    @property
    def further_replicas(self) -> int:
        """Replicas that the member has in addition for the time of the rollout."""
        return int(self.strategy is RolloutStrategy.SURGE_FREE_GPUS)


DECLARED_RECREATE = ChosenStrategy(RolloutStrategy.RECREATE, "rollout.strategy is Recreate")
"""What counts before the reasons are known: nothing is loaded next to what serves."""


def choose_strategy(facts: RolloutFacts) -> ChosenStrategy:
    """Return the strategy of a member whose candidate is to be loaded, by the table above."""
    if facts.requested is Strategy.RECREATE:
        return _recreate(facts, "rollout.strategy is Recreate")
    lacking = [capacity for capacity in facts.replicas if not capacity.both]
    if not lacking:
        return _in_place(facts)
    short = [capacity for capacity in lacking if not capacity.awaits]
    if not short:
        return _awaits(lacking[0].lacks, facts)
    lacks = listed(capacity.lacks for capacity in short[:1])
    if facts.requested is Strategy.SURGE:
        return _waits(f"rollout.strategy is Surge, and {lacks}", facts)
    if facts.free_gpus:
        return _on_free_gpus(facts, lacks)
    alone = all(capacity.alone for capacity in facts.replicas)
    reached = [capacity for capacity in facts.replicas if capacity.reached]
    if alone and len(reached) > 1:
        return _replica_by_replica(facts, lacks)
    if alone and facts.queues:
        return _recreate(facts, f"{lacks}, no GPU is free, and no other replica serves")
    return _waits(f"{lacks}, no GPU is free, and no other replica serves", facts)


def _in_place(facts: RolloutFacts) -> ChosenStrategy:
    servers = quantity(len(facts.replicas), "server")
    message = f"there is memory for both: {facts.candidate} is loaded next to {facts.stable} on {servers}"
    return ChosenStrategy(RolloutStrategy.SURGE_INPLACE, message)


def _on_free_gpus(facts: RolloutFacts, lacks: str) -> ChosenStrategy:
    replicas = len(facts.replicas) + 1
    message = (
        f"{lacks}; a further replica with {facts.candidate} is placed on free GPUs, and the others change one after "
        f"another once it serves{_by_replicas(facts, replicas)}"
    )
    return ChosenStrategy(RolloutStrategy.SURGE_FREE_GPUS, message)


def _replica_by_replica(facts: RolloutFacts, lacks: str) -> ChosenStrategy:
    replicas = len(facts.replicas)
    message = (
        f"{lacks}, and no GPU is free; one replica after another unloads {facts.stable} and loads {facts.candidate}, "
        f"while the others serve{_by_replicas(facts, replicas)}"
    )
    return ChosenStrategy(RolloutStrategy.REPLICA_BY_REPLICA, message)


def _recreate(facts: RolloutFacts, why: str) -> ChosenStrategy:
    replicas = len(facts.replicas)
    if replicas > 1:
        gap = f"one replica after another, while the others serve{_by_replicas(facts, replicas)}"
    else:
        queued = "the activator queues requests" if facts.queues else "requests fail"
        alone = f"; every request is then for {facts.candidate}, at the first step too" if facts.steps else ""
        gap = f"from then until {facts.candidate} is loaded no replica serves, and {queued}{alone}{_unmirrored(facts)}"
    message = f"{why}: {facts.stable} is unloaded before {facts.candidate} is loaded; {gap}"
    return ChosenStrategy(RolloutStrategy.RECREATE, message)


def _awaits(why: str, facts: RolloutFacts) -> ChosenStrategy:
    return ChosenStrategy(None, f"{why}: {facts.stable} goes on serving, and {facts.candidate} waits until then")


def _waits(why: str, facts: RolloutFacts) -> ChosenStrategy:
    if facts.requested is Strategy.SURGE:
        way = "set rollout.strategy to Auto or Recreate"
    else:
        way = (
            "raise minReplicas to 2 until it has changed, so that one replica changes while the other serves; or set "
            "rollout.strategy to Recreate, which unloads the former one first"
        )
    message = f"{why}: {facts.stable} goes on serving, and {facts.candidate} waits. Free GPU memory; or {way}"
    return ChosenStrategy(None, message)


def _by_replicas(facts: RolloutFacts, replicas: int) -> str:
    unmirrored = _unmirrored(facts)
    if facts.shares and not facts.by_replicas:
        ineffective = "the steps have no effect, and " if facts.steps else ""
        return f"{unmirrored}; {ineffective}{facts.candidate} is analyzed once it has all requests"
    words = shares_in_words(facts.shares, replicas)
    return f"{unmirrored}; requests are split as replicas are, so {words}" if words else ""


def _unmirrored(facts: RolloutFacts) -> str:
    return "; requests are not mirrored, which takes both on one server" if facts.mirrored else ""
