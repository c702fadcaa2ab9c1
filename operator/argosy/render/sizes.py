"""Sizes of rendered models before they are placed: from their real text, for the longest placement.

Rendered once for each spec. What scaling decides (replicas, instances, windows) makes no other text: it is counted as
long as it may get.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Generic, TypeVar

from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy.api.ensemble import Ensemble
from argosy.api.inferencemodel import InferenceModel
from argosy.api.model.batching.dynamic import Batching
from argosy.api.servingpool import RuntimeName
from argosy.api.values.derived import cached_with_spec
from argosy.planning.demand.footprint import DocumentSize, largest
from argosy.planning.demand.members import Members
from argosy.planning.demand.model_files import EngineFiles, declared_sources
from argosy.planning.variants import RoutedModel
from argosy.render.config.ensemble_config import ensemble_config
from argosy.render.config.language import BY_RUNTIME
from argosy.render.config.model_config import Devices, config_text, model_config
from argosy.render.config.traffic_config import longest_traffic, set_traffic
from argosy.render.config.version_texts import version_texts
from argosy_agent.contract import VersionSource
from argosy_agent.contract.sizes import OWN_BYTES, config_bytes, entry_bytes, own_bytes, texts_bytes

Member = TypeVar("Member", InferenceModel, Ensemble)

_FIRST_GPU = 100
"""An index of three digits."""
_MOST_INSTANCES = 256
_VERSION = 10**18
"""One with the most digits."""
_LISTED_VERSION = 21
"""A further version in a config's list of those that are served."""
_BATCHING = 64
"""What a window and a largest batch may add to a config that says less of them."""
_ALTERNATIVES = 32
"""What a document has in addition of a model whose steps are alternatives."""
_DECIDING = OWN_BYTES + 96
"""What is more where each version has a configuration of its own, and the folder's says which there are."""
_DECIDED = frozenset({"replicas", "min_replicas", "instances", "batching"})
_DECIDED_OF_BATCHING = frozenset({"max_queue_delay_microseconds", "preferred_batch_sizes"})


def document_sizes(members: Members) -> dict[str, DocumentSize]:
    """Return what each model and ensemble takes of its server's documents, by name; of one that is served in two
    revisions, whichever of them is the folder's.
    """
    every: list[InferenceModel | Ensemble] = [*members.models.values(), *members.ensembles.values()]
    return {
        acted_upon.name: _either([_size_of(spec, members) for spec in _specs(acted_upon, members)])
        for acted_upon in every
    }


def _specs(acted_upon: InferenceModel | Ensemble, members: Members) -> list[InferenceModel | Ensemble]:
    """Return the specs of a member's revisions, that which is acted upon first."""
    rollout = members.rollouts.get(acted_upon.name)
    others = rollout.specs.values() if rollout is not None else ()
    return [acted_upon, *(spec for spec in others if spec.spec is not acted_upon.spec)]


def _size_of(member: InferenceModel | Ensemble, members: Members) -> DocumentSize:
    names, files = members.served_names, members.engines.files.get(member.name)
    if isinstance(member, InferenceModel):
        return _size_of_model(member) if files is None else _with_engines(member, files.values())
    steps = tuple(sorted({(step.model, names.get(step.model, step.model)) for step in member.spec.steps}))
    return _size_of_ensemble(member, steps)


@cached_with_spec
def _size_of_model(model: InferenceModel) -> DocumentSize:
    return _model_size(SizeKey.of(model))


@cached_with_spec
def _size_of_ensemble(ensemble: Ensemble, served_names: tuple[tuple[str, str], ...]) -> DocumentSize:
    return _ensemble_size(SizeKey.of(ensemble), served_names)


def _either(sizes: list[DocumentSize]) -> DocumentSize:
    """Return the size of any of these revisions with any other one next to it."""
    if len(sizes) == 1:
        return sizes[0]
    further = max(size.further for size in sizes)
    return DocumentSize(max(size.declared for size in sizes), min(size.versions for size in sizes), further)


@dataclass(frozen=True, slots=True, eq=False)
class SizeKey(Generic[Member]):
    """The cache key of a resource's size: equal for specs that differ only in fields that scaling decides.

    Scaling creates a new spec object in each round, with the other values of the declared one.
    """

    resource: Member
    parts: tuple[int, ...]

    @classmethod
    def of(cls, resource: Member) -> "SizeKey[Member]":
        """Return the key, which keeps the values that it is compared by."""
        parts = [id(value) for name, value in resource.spec.__dict__.items() if name not in _DECIDED]
        batching: Batching | None = getattr(resource.spec, "batching", None)
        if batching is not None:
            parts += [id(value) for name, value in batching.__dict__.items() if name not in _DECIDED_OF_BATCHING]
            parts.append(len(batching.preferred_batch_sizes))
        return cls(resource, tuple(parts))

    def __hash__(self) -> int:
        return hash((self.resource.name, self.parts))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SizeKey) and self.parts == other.parts and self.resource.name == other.resource.name


@lru_cache(maxsize=1 << 16)
def _model_size(model: SizeKey[InferenceModel]) -> DocumentSize:
    return _size(model.resource, declared_sources(model.resource))


def _with_engines(model: InferenceModel, engines: Iterable[Mapping[int, EngineFiles]]) -> DocumentSize:
    """Return the size with the engines of the architecture that has the longest names."""
    return largest([_size(model, declared_sources(model, served)) for served in engines])


def _size(model: InferenceModel, sources: dict[int, VersionSource]) -> DocumentSize:
    gpus = max(1, model.spec.gpus or 0)
    config, served = _longest_config(SizeKey.of(model), gpus), model.served_name
    resource = model.name if served != model.name else ""
    sizes = [
        entry_bytes(served, resource, config, sources, gpus=gpus, more_versions=more)
        + _deciding(model)
        + (_LISTED_VERSION + own_bytes(config)) * more
        for more in (0, 1)
    ]
    return DocumentSize(sizes[0], len(sources), sizes[1] - sizes[0])


@lru_cache(maxsize=1 << 16)
def _longest_config(model: SizeKey[InferenceModel], gpus: int) -> int:
    """Return the bytes of the config where the model sits on as many GPUs as it requests, or on the CPU."""
    resource, on = model.resource, tuple(range(_FIRST_GPU, _FIRST_GPU + gpus))
    runtimes = tuple(RuntimeName) if resource.spec.backend in BY_RUNTIME else (RuntimeName.ARGOSY,)
    everywhere = [Devices(where, _MOST_INSTANCES, runtime) for where in (on, ()) for runtime in runtimes]
    traffic = longest_traffic(resource.spec.rollout)
    sizes = (
        config_bytes(_text(model_config(resource, devices, _versions(resource)), traffic))
        + texts_bytes(version_texts(resource, devices))
        for devices in everywhere
    )
    return max(sizes) + (_BATCHING if resource.spec.batching is not None else 0)


def _text(config: ModelConfig, traffic: str) -> str:
    set_traffic(config, traffic)
    return config_text(config)


def _deciding(resource: InferenceModel | Ensemble) -> int:
    """Return what is more of a member whose candidate was promoted: that keeps its configuration in its own folder."""
    return _DECIDING if resource.spec.rollout is not None else 0


def _versions(model: InferenceModel) -> tuple[int, ...]:
    """Return as many versions as are declared, one of them with the most digits: an engine's path has it, too."""
    return (*model.spec.declared_versions[1:], _VERSION)


@lru_cache(maxsize=1 << 16)
def _ensemble_size(ensemble: SizeKey[Ensemble], served_names: tuple[tuple[str, str], ...]) -> DocumentSize:
    resource, names = ensemble.resource, dict(served_names)
    config = ensemble_config(resource, dict.fromkeys(names, _VERSION), names)
    served, steps = resource.served_name, names.values()
    declared = resource.name if served != resource.name else ""
    versions = {resource.spec.version: VersionSource()}
    own = _ALTERNATIVES if isinstance(resource, RoutedModel) else 0
    text = config_bytes(_text(config, longest_traffic(resource.spec.rollout)))
    sizes = [
        entry_bytes(served, declared, text, versions, steps, more_versions=more)
        + own
        + _deciding(resource)
        + (_LISTED_VERSION + own_bytes(text, steps)) * more
        for more in (0, 1)
    ]
    return DocumentSize(sizes[0], 1, sizes[1] - sizes[0])
