"""What is reported on every resource: the plan held against what servers say. Written whole, so one write
each will do.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from argosy.api import Condition, Ensemble, InferenceModel, Problem, Resource, ServingPool
from argosy.api.status import CordonedGpu, ServingPoolStatus
from argosy.api.values.identity import PoolKey
from argosy.autoscaling.bottlenecks.diagnose import Told
from argosy.autoscaling.decision import Allocation, Decision
from argosy.autoscaling.pool.from_spec import may_be_zero
from argosy.planning.builds.plan import PlannedBuild
from argosy.planning.builds.pool import PoolEngines
from argosy.planning.demand.members import Members
from argosy.planning.facts import Refusal
from argosy.planning.migration.disruption import Disruption
from argosy.planning.migration.observed import Binding
from argosy.planning.migration.state import Note, PoolState
from argosy.status.ensemble import ensemble_status
from argosy.status.findings.bottleneck import bottleneck_status
from argosy.status.findings.scaling import ScaledMember
from argosy.status.invalid import EMPTY, deleting, invalid_status
from argosy.status.model import model_status
from argosy.status.pool import pool_status
from argosy.status.progress import PoolProgress
from argosy.status.stalled import Status, failed, refused

__all__ = ["Situation", "Status", "failed_status", "statuses"]


@dataclass(frozen=True, slots=True)
class Situation:
    """All that statuses are made from.

    `resources` are all that could be read; those that a problem names get a status that says so, and those in
    `still` are served all the same. `states` maps the key of a valid pool to its plan and what stands there, `notes` to
    why a model or ensemble waits on a server; `previous` maps a resource's identity to the status written last, `urls`
    and `selectors` to what its status gives, `bottlenecks` to what is told to hold its requests up. `engines` and
    `builds` are those of each pool, the latter by name; `holding`: the pools where requests wait for what has no
    replica. By identity too: `allocations` of what scales, and the
    `decisions` that they are from. `disruptions`: what each pool's round would have stopped, and was not let.
    `cordons`: the GPUs that each pool has cordoned. `undecided`: pools that cannot be read and never were, whose
    servers go on as they are.
    """

    resources: Sequence[Resource]
    problems: Sequence[Problem]
    states: Mapping[PoolKey, PoolState]
    previous: Mapping[str, Status]
    still: frozenset[str] = frozenset()
    refusals: Sequence[Refusal] = ()
    urls: Mapping[str, str] = field(default_factory=dict)
    holding: frozenset[PoolKey] = frozenset()
    grpc_addresses: Mapping[str, str] = field(default_factory=dict)
    selectors: Mapping[str, str] = field(default_factory=dict)
    notes: Mapping[PoolKey, Mapping[Binding, Note]] = field(default_factory=dict)
    engines: Mapping[PoolKey, PoolEngines] = field(default_factory=dict)
    builds: Mapping[PoolKey, Mapping[str, PlannedBuild]] = field(default_factory=dict)
    bottlenecks: Mapping[str, Told] = field(default_factory=dict)
    allocations: Mapping[str, Allocation] = field(default_factory=dict)
    decisions: Mapping[str, Decision] = field(default_factory=dict)
    disruptions: Mapping[PoolKey, Disruption] = field(default_factory=dict)
    cordons: Mapping[PoolKey, Sequence[CordonedGpu]] = field(default_factory=dict)
    undecided: frozenset[PoolKey] = frozenset()


def statuses(situation: Situation, now: datetime) -> dict[str, Status]:
    """Return the status of every resource, by its identity. `now` must have a time zone."""
    return _Writer(situation, now).all()


def failed_status(resource: Resource, previous: Status | None, error: str, now: datetime) -> Status:
    """Return what a resource's status becomes where its pool's round failed with this error; `previous` was written
    last.
    """
    before = previous.conditions if previous else ()
    return failed(previous or EMPTY[resource.kind], error, before, resource.metadata.generation, now)


class _Writer:
    """Everything that is asked for more than once, found once."""

    def __init__(self, situation: Situation, now: datetime) -> None:
        self._situation, self._now = situation, now
        self._faults: dict[str, list[Problem]] = {}
        for problem in situation.problems:
            self._faults.setdefault(problem.resource, []).append(problem)
        self._refusals: dict[str, list[Refusal]] = {}
        for refusal in situation.refusals:
            self._refusals.setdefault(refusal.resource, []).append(refusal)
        self._out = set(self._faults) - situation.still
        self._pools = {pool.key: self._progress(pool) for pool in situation.resources if isinstance(pool, ServingPool)}

    def all(self) -> dict[str, Status]:
        return {each.identity: self._status(each) for each in self._situation.resources}

    def _progress(self, pool: ServingPool) -> PoolProgress:
        """A pool that takes no part has no plan, and its members are told so."""
        state = self._situation.states.get(pool.key)
        if state is None:
            valid = (each for each in self._situation.resources if each.identity not in self._out)
            state = PoolState.without_plan(pool.key, Members.of(pool.key, valid))
        known = self._situation
        engines, builds = known.engines.get(pool.key), known.builds.get(pool.key, {})
        return PoolProgress.of(pool, state, known.notes.get(pool.key, {}), engines, builds)

    def _status(self, resource: Resource) -> Status:
        identity, now = resource.identity, self._now
        previous = self._situation.previous.get(identity) or resource.status
        before = previous.conditions if previous else ()
        generation = resource.metadata.generation
        if resource.metadata.deletion_timestamp:
            return deleting(previous or EMPTY[resource.kind], before, generation, now)
        faults = self._faults.get(identity, [])
        if not faults and not isinstance(resource, ServingPool) and resource.pool_key not in self._pools:
            faults = [_without_pool(resource)]
        if faults and identity not in self._situation.still:
            undecided = isinstance(resource, ServingPool) and resource.key in self._situation.undecided
            return invalid_status(resource, faults, previous, before, now, undecided=undecided)
        status = self._addressed(self._found(resource, before), resource, previous)
        if faults:
            return invalid_status(resource, faults, status, before, now, serves=True)
        if identity in self._refusals:
            return refused(status, self._refusals[identity], before, generation, now)
        return status

    def _found(self, resource: Resource, before: Sequence[Condition]) -> Status:
        if isinstance(resource, ServingPool):
            limit = self._situation.disruptions.get(resource.key)
            cordons = self._situation.cordons.get(resource.key, ())
            return pool_status(resource, self._pools[resource.key], before, self._now, limit, cordons)
        progress = self._pools[resource.pool_key]
        if isinstance(resource, InferenceModel):
            status: Status = model_status(resource, progress, before, self._scaled(resource), self._now)
        else:
            status = ensemble_status(resource, progress, before, self._scaled(resource), self._now)
        told = bottleneck_status(self._situation.bottlenecks.get(resource.identity))
        return status.model_copy(update={"bottleneck": told})

    def _scaled(self, member: InferenceModel | Ensemble) -> ScaledMember:
        """What is known of how much there is to be of a member."""
        name, known = member.identity, self._situation
        previous = known.previous.get(name) or member.status
        before = None if previous is None or isinstance(previous, ServingPoolStatus) else previous.scaling
        return ScaledMember(member, known.allocations.get(name), known.decisions.get(name), before)

    def _addressed(self, status: Status, resource: Resource, previous: Status | None) -> Status:
        """The status with the URL, the gRPC address and the selector that the shell gives.

        URL and address stand once something answers there, be it by holding requests, and stay: clients hold on to
        them.
        """
        identity = resource.identity
        url, selector = self._situation.urls.get(identity), self._situation.selectors.get(identity)
        given: dict[str, str] = {}
        if url is not None:
            answered = previous is not None and previous.url == url
            answers = status.available_replicas > 0 or answered or self._is_held(resource)
            given["url"] = url if answers else ""
            given["grpc_address"] = self._situation.grpc_addresses.get(identity, "") if answers else ""
        if selector is not None:
            given["selector"] = selector
        return status.model_copy(update=given) if given else status

    def _is_held(self, resource: Resource) -> bool:
        """Whether requests for it wait somewhere while it has no replica."""
        if isinstance(resource, ServingPool):
            return False
        return resource.pool_key in self._situation.holding and may_be_zero(resource)


def _without_pool(member: InferenceModel | Ensemble) -> Problem:
    pool = member.spec.pool_ref.name
    message = f"there is no ServingPool {pool!r} in namespace {member.namespace}; create it, or name another"
    return Problem("", member.identity, "spec.poolRef.name", message)
