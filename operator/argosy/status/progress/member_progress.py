"""The part of a pool's progress that the status of one member follows from: itself, what it runs, and its adapters."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import NamedTuple

from argosy.api import Ensemble, InferenceModel
from argosy.api.statusparts import PreemptionStatus
from argosy.planning.adapters import adapter_name
from argosy.planning.demand.measured import MeasuredMemory
from argosy.planning.demand.members import only
from argosy.planning.facts import ServerReport
from argosy.planning.migration.state import Note
from argosy.planning.plan import ServerPlan, Unplaced
from argosy.planning.rollouts.member import MemberRollout
from argosy.planning.variants import RoutedModel
from argosy.status.measured.deviation import is_early
from argosy.status.progress.pool_progress import PoolProgress
from argosy_agent.contract import LoadedModel
from argosy_agent.contract.builds import ModelShape


class NamedProgress(NamedTuple):
    """What is known of one model or ensemble of a pool: what it is to be, where it is planned, and what servers say."""

    member: InferenceModel | Ensemble | None
    runs: tuple[str, ...] | None
    rollout: MemberRollout | None
    shape: ModelShape | None
    measured: MeasuredMemory | None
    measured_early: bool
    servers: tuple[ServerPlan, ...]
    reported: Mapping[str, Sequence[LoadedModel]] | None
    reports: tuple[ServerReport, ...]
    outdated: tuple[bool, ...]
    notes: tuple[Note | None, ...]
    pinned: frozenset[int] | None
    unplaced: tuple[Unplaced, ...]
    remedies: tuple[str | None, ...]
    lost_to: PreemptionStatus | None
    priority: int | None


def names_of(member: InferenceModel | Ensemble, progress: PoolProgress) -> tuple[str, ...]:
    """Return the names of all that the status of a member is made from."""
    if isinstance(member, InferenceModel):
        adapters = member.spec.adapters
        return (member.name, *(adapter_name(member.name, one.name) for one in adapters)) if adapters else (member.name,)
    names = {member.name: None, **dict.fromkeys(step.model for step in member.spec.steps)}
    serving = progress.members.ensembles.get(member.name)
    names |= dict.fromkeys(step.model for step in serving.spec.steps) if serving is not None else {}
    names |= dict.fromkeys(progress.members.models_of(member.name))
    if isinstance(member, RoutedModel):
        names |= dict.fromkeys(member.variant_models)
        names |= dict.fromkeys(adapter_name(member.name, one.name) for one in member.declared.spec.adapters)
    return tuple(names)


def has_engines(names: Sequence[str], progress: PoolProgress) -> bool:
    """Return whether one of these models has an engine: its status follows from builds of the whole pool, too."""
    engines = progress.engines
    return engines is not None and not engines.models.keys().isdisjoint(names)


def named_progress(name: str, progress: PoolProgress, now: datetime) -> NamedProgress:
    """Return what is known of one model or ensemble."""
    members, observed, notes = progress.members, progress.observed, progress.notes
    servers, reported = progress.servers_with(name), observed.reported.get(name)
    unplaced, measured = progress.unplaced.get(name, ()), members.measured.get(name)
    return NamedProgress(
        members.models.get(name) or members.ensembles.get(name),
        members.runs.get(name),
        members.rollouts.get(name),
        members.shapes.get(name),
        measured,
        measured is not None and is_early(measured, now),
        servers,
        reported,
        tuple([observed.reports[server] for server in reported]) if reported else (),
        tuple([(server.name, name) in observed.outdated for server in servers]) if observed.outdated else (),
        tuple([notes.get((server.name, name)) for server in servers]) if notes else (),
        progress.pinned.get(name),
        unplaced,
        tuple([progress.remedies.get(replica.group) for replica in unplaced]) if unplaced else (),
        progress.lost_to.get(name),
        progress.state.priorities.get(name),
    )


def narrowed(progress: PoolProgress, names: Sequence[str]) -> PoolProgress:
    """Return the progress of these models and ensembles alone, as if there were no others in the pool."""
    state, members, observed = progress.state, progress.members, progress.observed
    servers = {server: None for name in names for server in state.bindings.servers.get(name, ())}
    every, reported = set(names), only(observed.reported, names)
    reporting = {server: None for of_name in reported.values() for server in of_name}
    return replace(
        progress,
        state=replace(
            state,
            members=replace(members.of_names(names), broken=frozenset(), scaled=frozenset()),
            bindings=replace(
                state.bindings,
                servers=only(state.bindings.servers, names),
                names={server: state.bindings.names[server] & every for server in servers},
                unschedulable=frozenset(),
            ),
            observed=replace(
                observed,
                reports={server: observed.reports[server] for server in reporting},
                reported=reported,
                loaded={},
                served={},
                sources={},
                outdated=frozenset(one for one in observed.outdated if one[1] in every),
                drain_since={},
            ),
            current={},
            nodes={},
            targets={},
            priorities=only(state.priorities, names),
        ),
        notes={one: note for one, note in progress.notes.items() if one[1] in every and one[0] in servers},
        servers=only(progress.servers, servers),
        pinned=only(progress.pinned, names),
        unplaced=only(progress.unplaced, names),
        lost_to=only(progress.lost_to, names),
    )
