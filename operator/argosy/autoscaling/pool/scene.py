"""What a pool's round starts from, and what the next one has to know."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from argosy.api import InferenceModel
from argosy.autoscaling.bottlenecks import diagnose as diagnosis
from argosy.autoscaling.decision import Allocation, Decision
from argosy.autoscaling.ensemble import EnsembleMemory
from argosy.autoscaling.learning.memory import Memory
from argosy.autoscaling.policy import Policy, Served
from argosy.autoscaling.pool.from_spec import Member
from argosy.autoscaling.pool.room import Grant
from argosy.autoscaling.pool.told import Told
from argosy.planning.facts import CurrentServer


@dataclass(frozen=True, slots=True)
class PoolScene:
    """What a pool's decisions are made from, beside its signals. The mappings are by identity.

    `members`: its models and ensembles in the forms that are acted upon, as they are declared; `policies` of those that
    follow signals; `allocations` and `grants`: what each has, and what the last plan gave it; `served`: of models, what
    memory has to do with. `servers`: where they
    sit. `unheld`: why requests for what has no replica would not be held, so that nothing goes to zero; empty where
    they would.
    """

    members: tuple[Member, ...] = ()
    policies: Mapping[str, Policy] = field(default_factory=dict)
    allocations: Mapping[str, Allocation] = field(default_factory=dict)
    grants: Mapping[str, Grant] = field(default_factory=dict)
    served: Mapping[str, Served] = field(default_factory=dict)
    servers: tuple[CurrentServer, ...] = ()
    unheld: str = "nothing holds requests here"


@dataclass(frozen=True, slots=True)
class PoolMemory:
    """What the next round has to know, by identity: `told` has the last decisions."""

    models: Mapping[str, Memory] = field(default_factory=dict)
    ensembles: Mapping[str, EnsembleMemory] = field(default_factory=dict)
    bottlenecks: Mapping[str, diagnosis.Memory] = field(default_factory=dict)
    told: Mapping[str, Told] = field(default_factory=dict)

    @property
    def decisions(self) -> dict[str, Decision]:
        """The last decisions."""
        return {name: told.decision for name, told in self.told.items()}

    @property
    def holding_up(self) -> dict[str, diagnosis.Told]:
        """What is told to hold each member up, where something does."""
        return {name: each.told for name, each in self.bottlenecks.items() if each.told is not None}

    def learnt(self, members: Iterable[Member]) -> Iterator[tuple[Member, Memory]]:
        """Yield the members of which something is known, with that: of a model that an ensemble scales as of
        its stage.
        """
        stages = {name: known for each in self.ensembles.values() for name, known in each.stages.items()}
        for member in members:
            if isinstance(member, InferenceModel):
                memory = self.models.get(member.identity) or stages.get(member.name)
            else:
                memory = self.ensembles[member.identity].whole if member.identity in self.ensembles else None
            if memory is not None:
                yield member, memory
