"""The strategies of a pool's rollouts, chosen by the memory of its servers before anything that serves is unloaded."""

from collections.abc import Callable, Collection, Mapping

from argosy.api.model.rollout.rollout import Strategy
from argosy.planning.amounts import gib
from argosy.planning.migration.memory.budget import BlockedChange, MemoryBudget
from argosy.planning.migration.pool_migration import budgets_of, occupants_of
from argosy.planning.migration.state import PoolState
from argosy.planning.pinned import PinnedEnsemble
from argosy.planning.rollouts.member import MemberRollout
from argosy.planning.rollouts.strategy import (
    DECLARED_RECREATE,
    ChosenStrategy,
    ReplicaCapacity,
    RolloutFacts,
    choose_strategy,
)
from argosy.rollout.state import PROVING, Phase


def chosen_strategies(
    state: PoolState, queued: Collection[str], finds_gpus: Callable[[str], bool]
) -> dict[str, ChosenStrategy]:
    """Return the strategy of each rollout of a pool with a candidate, by the member's name.

    `queued`: members whose requests an activator queues while no server answers. `finds_gpus`: whether one more replica
    of a member would be placed. A strategy that is chosen stays until its rollout ends.
    """
    under_way = {name: one for name, one in state.members.rollouts.items() if _has_both(one)}
    undecided = {name for name, one in under_way.items() if one.state.phase in PROVING and not _is_chosen(one)}
    budgets = budgets_of(state, occupants_of(state)) if undecided else {}
    chosen: dict[str, ChosenStrategy] = {}
    for name, rollout in under_way.items():
        if name not in undecided:
            chosen |= {name: rollout.chosen} if rollout.chosen is not None else {}
        elif _is_planned(state, name, rollout):
            chosen[name] = choose_strategy(_facts(state, name, rollout, budgets, name in queued, finds_gpus))
    return chosen


def _is_planned(state: PoolState, name: str, rollout: MemberRollout) -> bool:
    """Return whether every server of a member is to have its candidate: before that its memory is not counted, which
    decides nothing of what is declared to recreate.
    """
    if rollout.settings is not None and rollout.settings.strategy is Strategy.RECREATE:
        return bool(state.bindings.servers.get(name))
    steps = rollout.candidate.pins if isinstance(rollout.candidate, PinnedEnsemble) else {}
    versions = steps or {name: rollout.candidate.spec.default_version} if rollout.candidate is not None else {}
    targets = [state.targets.get(server, {}) for server in state.bindings.servers.get(name, ())]
    models = {one: version for one, version in versions.items() if one in state.members.models}
    return bool(targets) and all(
        one in target and version in target[one].versions for target in targets for one, version in models.items()
    )


def _has_both(rollout: MemberRollout) -> bool:
    return rollout.state.stable is not None and rollout.state.candidate is not None


def _is_chosen(rollout: MemberRollout) -> bool:
    """Return whether a strategy is chosen for good: what surges in place may lose the memory until it is loaded."""
    chosen = rollout.chosen
    if chosen is None or chosen.strategy is None or chosen is DECLARED_RECREATE:
        return False
    return not (chosen.loads_both and rollout.state.phase is Phase.LOADING)


def _facts(
    state: PoolState,
    name: str,
    rollout: MemberRollout,
    budgets: Mapping[str, MemoryBudget],
    queued: bool,
    finds_gpus: Callable[[str], bool],
) -> RolloutFacts:
    settings, current = rollout.settings, rollout.state
    requested = settings.strategy if settings is not None else Strategy.AUTO
    replicas = [_capacity(state, name, budgets[server]) for server in state.bindings.servers[name] if server in budgets]
    short = any(not replica.both for replica in replicas)
    return RolloutFacts(
        requested,
        replicas,
        free_gpus=requested is Strategy.AUTO and short and finds_gpus(name),
        queues=queued,
        steps=tuple(step.traffic for step in settings.steps) if settings is not None else (),
        mirrored=settings.shadow.traffic if settings is not None and settings.shadow is not None else 0,
        by_replicas=not rollout.uniform,
        candidate=f"version {current.candidate.version}" if current.candidate is not None else "",
        stable=f"version {current.stable.version}" if current.stable is not None else "",
    )


def _capacity(state: PoolState, name: str, budget: MemoryBudget) -> ReplicaCapacity:
    """Return the capacity of a server for a candidate of a model, or for all that one of an ensemble runs."""
    blocked = [budget.blocked[model] for model in state.members.models_of(name) if model in budget.blocked]
    updates = [change for change in blocked if change.change.before is not None and not change.change.inplace]
    short = [change for change in updates if change.shortage is not None or change.change.apart]
    unreserved = [change.unreserved for change in updates if change.unreserved is not None]
    lacks = [*(_lacks(change, budget) for change in short), *(lack.message for lack in unreserved)]
    return ReplicaCapacity(
        both=not lacks,
        alone=all(change.fits_alone for change in short) and all(lack.alone for lack in unreserved),
        reached=state.observed.reachable(budget.server.name, name),
        lacks=lacks[0] if lacks else "",
        awaits=not short and all(lack.rollouts for lack in unreserved),
    )


def _lacks(blocked: BlockedChange, budget: MemoryBudget) -> str:
    change, short = blocked.change, blocked.shortage
    model, version = change.placement.model, change.placement.version
    new = max(set(change.coming_versions) or {version})
    if short is None:
        return f"the server opens one engine of tensorrt_llm for all versions of {model}"
    return (
        f"version {new} of {model} needs {gib(short.need)} on GPU {short.gpu} of node {budget.server.node}, where "
        f"{gib(short.free)} are free next to what is loaded"
    )
