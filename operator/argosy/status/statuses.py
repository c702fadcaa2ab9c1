"""The status of every resource: the plan compared with servers' reports. Each is complete, for a single write."""

from collections.abc import Sequence
from datetime import datetime

from argosy.api import Condition, Ensemble, InferenceModel, Problem, Resource, ServingPool
from argosy.api.status import Status
from argosy.api.values.reuse import RoundCache
from argosy.autoscaling.pool.policies import may_be_zero
from argosy.planning.demand.members import Members
from argosy.planning.facts import Refusal
from argosy.planning.migration.choices import VariantChoice
from argosy.planning.migration.pool_migration import PoolMigration
from argosy.planning.migration.state import PoolState
from argosy.planning.nodes.selection import closed_devices, faulty, unsteady
from argosy.planning.packing.lower_bound import fewest_of_pool
from argosy.planning.variants import RoutedModel, VariantModel
from argosy.round import DecidedRound
from argosy.status.findings.scaling import ScaledMember
from argosy.status.invalid import EMPTY, deleting, invalid_status
from argosy.status.member import Addresses, MemberFacts, member_status
from argosy.status.pool import pool_status
from argosy.status.preemption.preemptions import Preemptions, preemptions
from argosy.status.progress.member_progress import has_engines, named_progress, names_of, narrowed
from argosy.status.progress.pool_progress import PoolProgress
from argosy.status.routed import SeparateVariants
from argosy.status.stalled import failed, refused


def statuses(decided: DecidedRound, cache: RoundCache | None = None) -> dict[str, Status]:
    """Return the status of every resource, by its identity."""
    writer = _Writer(decided, cache or RoundCache())
    return {resource.identity: writer.status(resource) for resource in decided.resources}


def failed_status(resource: Resource, previous: Status | None, error: str, now: datetime) -> Status:
    """Return the status of a resource whose pool's round failed with this error. `previous` was written last."""
    before = previous.conditions if previous else ()
    return failed(previous or EMPTY[resource.kind], error, before, resource.metadata.generation, now)


_NO_PREEMPTIONS = Preemptions()


class _Writer:
    """Derives the statuses of one round; what several of them need is derived once."""

    def __init__(self, decided: DecidedRound, cache: RoundCache) -> None:
        self._reused = cache.sort("statuses")
        self._decided, self._snapshot, self._now = decided, decided.snapshot, decided.now
        self._still = decided.accepted.still
        self._faults: dict[str, list[Problem]] = {}
        for problem in decided.accepted.problems:
            self._faults.setdefault(problem.resource, []).append(problem)
        self._refusals: dict[str, list[Refusal]] = {}
        for refusal in decided.snapshot.refusals:
            self._refusals.setdefault(refusal.resource, []).append(refusal)
        self._variants: dict[str, list[VariantModel]] = {}
        for variant in decided.accepted.valid:
            if isinstance(variant, VariantModel):
                self._variants.setdefault(variant.declared_identity, []).append(variant)
        self._preemptions = {key: preemptions(decided, key) for key in decided.migrations}
        pools = [pool for pool in decided.resources if isinstance(pool, ServingPool)]
        self._pools = {pool.key: self._progress(pool) for pool in pools}

    def status(self, resource: Resource) -> Status:
        """Return the status of a resource."""
        identity, now = resource.identity, self._now
        previous = self._snapshot.status(resource)
        before = previous.conditions if previous else ()
        generation = resource.metadata.generation
        if resource.metadata.deletion_timestamp:
            return deleting(previous or EMPTY[resource.kind], before, generation, now)
        faults = self._faults.get(identity, [])
        if not faults and not isinstance(resource, ServingPool) and resource.pool_key not in self._pools:
            faults = [_without_pool(resource)]
        if faults and identity not in self._still:
            undecided = isinstance(resource, ServingPool) and self._decided.is_undecided(resource)
            return invalid_status(resource, faults, previous, before, now, undecided=undecided)
        if isinstance(resource, ServingPool):
            status = self._addresses(resource).on(self._pool_status(resource, before), previous)
        else:
            status = self._member_status(resource, previous)
        if faults:
            return invalid_status(resource, faults, status, before, now, serves=True)
        if identity in self._refusals:
            return refused(status, self._refusals[identity], before, generation, now)
        return status

    def _progress(self, pool: ServingPool) -> PoolProgress:
        """Return the progress of a pool. One that takes no part has no plan, and its members' statuses say so."""
        key, decided = pool.key, self._decided
        migration = decided.migrations.get(key)
        if migration is None:
            out = self._faults.keys() - self._still
            valid = (resource for resource in decided.resources if resource.identity not in out)
            migration = PoolMigration(PoolState.without_plan(key, Members.of(key, valid)))
        lost_to = self._preemptions.get(key, _NO_PREEMPTIONS).to
        engines, builds = decided.engines.get(key), decided.builds.get(key, ())
        return PoolProgress.of(pool, migration, engines, builds, decided.remedies, lost_to)

    def _lower_bound(self, pool: ServingPool) -> int:
        """Return the GPUs that no plan of a pool can do without which places what its plan places."""
        facts = next((facts for facts in self._decided.ranked.facts if facts.pool == pool.key), None)
        return fewest_of_pool(self._pools[pool.key].plan, facts) if facts is not None else 0

    def _pool_status(self, pool: ServingPool, before: Sequence[Condition]) -> Status:
        migration = self._decided.migrations.get(pool.key)
        disruption = migration.disruption if migration is not None else None
        cordons = self._decided.cordons.get(pool.key)
        gpus = cordons.gpus if cordons is not None else ()
        consolidated = self._decided.consolidations.get(pool.key)
        return pool_status(
            pool,
            self._pools[pool.key],
            before,
            self._now,
            disruption,
            gpus,
            faulty(pool, self._snapshot.nodes),
            consolidated.status if consolidated is not None else None,
            closed_devices(self._pools[pool.key].plan.servers, self._snapshot.nodes),
            self._lower_bound(pool),
            unsteady(pool, self._snapshot.nodes),
        )

    def _member_status(self, member: InferenceModel | Ensemble, previous: Status | None) -> Status:
        """Return the status of a valid member: the last one, where all that it follows from is as it was."""
        progress, now, facts = self._pools[member.pool_key], self._now, self._facts(member)
        names = names_of(member, progress)
        if previous is None or has_engines(names, progress):
            return member_status(member, progress, facts, previous, now)
        of_names = [named_progress(name, progress, now) for name in names]
        inputs = (member, facts, progress.pool, progress.plan.pool, progress.state.machine, of_names)
        return self._reused.settled(
            member.identity,
            previous,
            inputs,
            lambda: member_status(member, narrowed(progress, names), facts, previous, now),
        )

    def _facts(self, member: InferenceModel | Ensemble) -> MemberFacts:
        """Return what is decided and measured of a member."""
        identity, snapshot, decided = member.identity, self._snapshot, self._decided
        preempted = self._preemptions.get(member.pool_key, _NO_PREEMPTIONS)
        facts = MemberFacts(
            decided.allocations.get(identity),
            snapshot.decisions.get(identity),
            snapshot.bottlenecks.get(identity),
            snapshot.language.get(identity),
            snapshot.footprints.get(identity),
            decided.rollouts.members.get(identity),
            preempted.to.get(member.name),
            preempted.of.get(member.name, ()),
            self._addresses(member),
        )
        if not isinstance(member, RoutedModel):
            return facts
        variants = self._variants.get(identity, ())
        separate = self._separate(member, variants)
        return facts._replace(variants=variants, report=snapshot.variants.get(identity), separate=separate)

    def _separate(self, model: RoutedModel, variants: Sequence[VariantModel]) -> SeparateVariants | None:
        """Return what is decided on a model whose variants have servers of their own; None for any other."""
        if not model.is_separate:
            return None
        first = model.variant_models[0]
        choice = self._decided.choices.get(model.pool_key, {}).get(model.name, VariantChoice(first, first))
        scaled = {variant.name: self._scaled(variant) for variant in variants}
        return SeparateVariants(choice, self._snapshot.regimes.get(model.identity), scaled)

    def _scaled(self, member: InferenceModel | Ensemble) -> ScaledMember:
        """Return a member with its allocation and the decision behind it."""
        name, decided, snapshot = member.identity, self._decided, self._snapshot
        return ScaledMember.of(
            member, decided.allocations.get(name), snapshot.decisions.get(name), snapshot.status(member)
        )

    def _addresses(self, resource: Resource) -> Addresses:
        """Return the URL, the gRPC address and the selector that the shell provides."""
        identity, snapshot = resource.identity, self._snapshot
        return Addresses(
            snapshot.urls.get(identity),
            snapshot.grpc_addresses.get(identity, ""),
            snapshot.selectors.get(identity),
            self._is_activated(resource),
        )

    def _is_activated(self, resource: Resource) -> bool:
        """Return whether an activator queues requests for a resource while it has no replica."""
        if isinstance(resource, ServingPool):
            return False
        return self._snapshot.pool(resource.pool_key).holds and may_be_zero(resource)


def _without_pool(member: InferenceModel | Ensemble) -> Problem:
    pool = member.spec.pool_ref.name
    message = f"there is no ServingPool {pool!r} in namespace {member.namespace}; create it, or name another"
    return Problem("", member.identity, "spec.poolRef.name", message)
