"""What a pool's round starts from, and what the next one has to know."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from argosy.api import InferenceModel
from argosy.autoscaling.bottlenecks import diagnose as diagnosis
from argosy.autoscaling.decision import Allocation, Decision
from argosy.autoscaling.memory import MemberMemory, Memory
from argosy.autoscaling.policy import Policy, Served
from argosy.autoscaling.pool.from_spec import Member
from argosy.autoscaling.pool.grants import Grant
from argosy.autoscaling.pool.reported import Report
from argosy.planning.facts import CurrentServer


@dataclass(frozen=True, slots=True)
class PoolInputs:
    """What a pool's decisions are made from, in addition to its signals. The mappings are by identity.

    `members`: its models and ensembles as they are declared; `policies` of those that follow signals; `allocations` and
    `grants`: what each has, and what the last plan gave it; `served`: what memory has to do with, of models. `servers`:
    where they are. `unheld`: why requests for what has no replica would not be kept, so that nothing goes to zero; an
    empty text where they would.
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
    """What the next round has to know, by identity: `reports` has the last decisions."""

    members: Mapping[str, MemberMemory] = field(default_factory=dict)
    bottlenecks: Mapping[str, diagnosis.Memory] = field(default_factory=dict)
    reports: Mapping[str, Report] = field(default_factory=dict)

    @property
    def decisions(self) -> dict[str, Decision]:
        """The last decisions."""
        return {name: report.decision for name, report in self.reports.items()}

    @property
    def reported_bottlenecks(self) -> dict[str, diagnosis.BottleneckReport]:
        """The bottleneck of each member, where there is one."""
        return {name: memory.report for name, memory in self.bottlenecks.items() if memory.report is not None}

    def estimated(self, members: Iterable[Member]) -> Iterator[tuple[Member, Memory]]:
        """Yield the members of which something is known, with that: of a model that an ensemble scales as its stage."""
        stages = {
            name: memory for member_memory in self.members.values() for name, memory in member_memory.stages.items()
        }
        for member in members:
            member_memory = self.members.get(member.identity)
            memory = member_memory.own if member_memory is not None else None
            if memory is None and isinstance(member, InferenceModel):
                memory = stages.get(member.name)
            if memory is not None:
                yield member, memory
