"""Which versions stand side by side on one server while a new one takes over.

A new version loads beside those that serve; they go when it is ready there and no ensemble runs them any
more. An ensemble moves to new versions of its steps in one step: when all of them are ready beside it.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field

from argosy.api.ensemble import Ensemble
from argosy.api.inferencemodel import InferenceModel
from argosy.api.versions import retained
from argosy_runtime.agent.contract import RenderedModel, RenderedRepository, VersionSource


@dataclass(frozen=True, slots=True)
class ServerState:
    """What one server has: the repository it last loaded, and the (model, version) pairs that are ready.

    `known`: by model, the versions that this server or another of the pool has or had, and where each comes from.
    `served`: by name, the versions that this server had ready when it was last heard of. `unserved`: whether no server
    of the pool answers for a model.
    """

    repository: RenderedRepository
    ready: Collection[tuple[str, int]] = ()
    known: Mapping[str, Mapping[int, VersionSource]] = field(default_factory=dict)
    served: Mapping[str, Collection[int]] = field(default_factory=dict)
    unserved: Callable[[str], bool] = lambda _: False

    def serves(self, model: str, version: int) -> bool:
        """Whether requests are answered by this version now."""
        loaded = self.repository.model(model)
        return loaded is not None and version in loaded.versions and (model, version) in self.ready

    def pinned(self, model: str) -> set[int]:
        """The model's versions that a loaded ensemble runs."""
        return {each.steps[model] for each in self.repository.models if model in each.steps}


@dataclass(frozen=True, slots=True)
class Exceptions:
    """What of one server is not as planned yet, by name.

    `withheld`: not to be loaded now. `kept`: stays beside the planned, in the form it has. `held`: keeps the form it
    has in place of the planned one.
    """

    withheld: Collection[str] = ()
    kept: Collection[str] = ()
    held: Collection[str] = ()

    def applied(self, rendered: Iterable[RenderedModel], repository: RenderedRepository) -> list[RenderedModel]:
        """The rendered folders, with those that stay as they are in `repository`."""
        former = {each.name: each for each in repository.models}
        found = {each.name: each for each in rendered if each.name not in self.withheld or each.name in self.kept}
        found |= {name: former[name] for name in self.held if name in former and name in found}
        found |= {name: former[name] for name in self.kept if name in former and name not in found}
        return list(found.values())


def versions_beside(
    model: InferenceModel, source: VersionSource, wanted: Collection[int], state: ServerState
) -> dict[int, VersionSource]:
    """The versions this server should have: the declared one, and those that are still needed.

    `wanted` are versions that the ensembles to come name. A server that has nothing of the model, for its Pod is a new
    one, is to have again what it served; where nobody serves the model, also what another one did.
    """
    spec, name = model.spec, model.name
    before = state.repository.model(name)
    own = dict(before.versions) if before else {}
    known = {**state.known.get(name, {}), **own, spec.version: source}
    kept = retained(spec.version, spec.version_policy, known)
    kept |= (set(wanted) | state.pinned(name)) & set(known)
    if not state.serves(name, spec.version):
        kept |= set(own) if before else set(state.served.get(name, ())) & set(known)
        kept |= set(known) if state.unserved(name) else set()
    return {version: known[version] for version in sorted(kept)}


def settled_ensemble(
    ensemble: Ensemble, pins: Mapping[str, int], rendered: RenderedModel, state: ServerState
) -> RenderedModel:
    """The new form of an ensemble where all its steps are ready on this server.

    Until then the one that serves.
    """
    before = state.repository.model(ensemble.name)
    if before is None or all(state.serves(step, version) for step, version in pins.items()):
        return rendered
    return before
