"""The memory that rollouts take in addition: of candidates next to stable revisions, and of what is promoted.

A candidate is loaded next to the stable revision where there is memory for both. It is part of the model's footprint
from the round in which it is declared until its rollout ends, so that nothing else is placed there meanwhile. What
serves keeps its place all the same (`packing/bound/`).
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from argosy.api import InferenceModel
from argosy.api.servingpool import RuntimeName
from argosy.planning.demand.footprint import footprint_of, instances_of
from argosy.planning.demand.members import Members
from argosy.planning.facts import Demand, Footprint, Group

LoadedVersions = Mapping[str, Mapping[str, Mapping[int, int]]]
"""The loaded versions, by server and model, each with its bytes on a GPU."""


def with_candidates(
    groups: Iterable[Group], members: Members, loaded: LoadedVersions, runtime: RuntimeName
) -> Iterator[Group]:
    """Yield the groups with the memory that candidates of their models take, be it for rollouts of ensembles."""
    in_rollouts = members.versions_in_rollouts()
    for group in groups:
        retained = {demand.model: _retained(demand.model, members, in_rollouts) for demand in group.demands}
        yield _with_candidates(group, retained, members, loaded, runtime) if any(retained.values()) else group


def _with_candidates(
    group: Group,
    retained: Mapping[str, set[int]],
    members: Members,
    loaded: LoadedVersions,
    runtime: RuntimeName,
) -> Group:
    demands = tuple(
        replace(demand, footprint=_footprint(demand, retained[demand.model], members, loaded, runtime))
        for demand in group.demands
    )
    surging = any(
        len(versions) > 1 and versions <= on_server.get(model, {}).keys()
        for model, versions in retained.items()
        for on_server in loaded.values()
    )
    return replace(group, demands=demands, surging=surging)


def _retained(name: str, members: Members, in_rollouts: Mapping[str, set[int]]) -> set[int]:
    """Return the versions of a model that rollouts keep loaded together on a server. `in_rollouts`: by model."""
    rollout = members.rollouts.get(name)
    if rollout is not None and rollout.chosen is not None and not rollout.chosen.loads_both:
        return set(members.models[name].spec.declared_versions)
    return in_rollouts.get(name, set())


def _footprint(
    demand: Demand, retained: set[int], members: Members, loaded: LoadedVersions, runtime: RuntimeName
) -> Footprint:
    need, model = demand.footprint, members.models[demand.model]
    if need.memory == 0 or need.assumed:
        return need
    one = need.memory // demand.versions
    versions = retained | set(model.spec.declared_versions)
    sizes = [_size(demand, version, members, loaded, runtime) for version in versions]
    both = sum(sizes) + one * max(0, demand.versions - len(versions))
    promoted = _promoted(demand, members, runtime)
    surge, promoted = max(0, both - need.memory), promoted if promoted > need.memory else 0
    return replace(need, surge=surge, promoted=promoted) if surge or promoted else need


def _size(demand: Demand, version: int, members: Members, loaded: LoadedVersions, runtime: RuntimeName) -> int:
    """Return the bytes of one version with the instances that the model has: of its own spec, or else as loaded."""
    spec = members.spec_of(demand.model, version)
    if spec is not None:
        return _memory(demand, spec, 1, members, runtime)
    sizes = (on_server.get(demand.model, {}).get(version, 0) for on_server in loaded.values())
    return max(sizes, default=0) or demand.footprint.memory // demand.versions


def _promoted(demand: Demand, members: Members, runtime: RuntimeName) -> int:
    """Return the bytes that the model takes once its candidate is promoted; 0 without one that may be."""
    rollout = members.rollouts.get(demand.model)
    if rollout is None or not rollout.is_proving or not isinstance(rollout.candidate, InferenceModel):
        return 0
    return _memory(demand, rollout.candidate, demand.versions, members, runtime)


def _memory(demand: Demand, spec: InferenceModel, versions: int, members: Members, runtime: RuntimeName) -> int:
    # of a candidate nothing is measured yet; where it declares nothing, what it follows is the best estimate
    own = spec.spec.footprint is not None and spec.spec.footprint.gpu_memory is not None
    counts = spec is members.models[demand.model] or not own
    measured = members.measured.get(demand.model) if counts else None
    need = footprint_of(spec, versions, shape=members.shapes.get(demand.model), runtime=runtime, measured=measured)
    return need.memory * demand.instances // instances_of(spec)
