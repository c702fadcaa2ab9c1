"""Models with variants, as planning sees them: a model for each variant, and a routed model that runs them all.

A routed model is planned, versioned and scaled like an ensemble whose steps are the variants: they share a server, and
a new version takes over once every variant of it is ready. It has the identity of the declared model.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Self, TypeGuard

from pydantic import PrivateAttr

from argosy.api import Ensemble, EnsembleSpec, InferenceModel, InferenceModelSpec, Resource, Step
from argosy.api.model.adapters import aliases
from argosy.api.model.variants import Routing, Variant, VariantPlacement
from argosy.api.model.variantspecs import variant_name, variant_path, variant_spec
from argosy.api.scalingstatus import ScalingStatus
from argosy.api.status import InferenceModelStatus, Status
from argosy.api.values.identity import Identity
from argosy.planning.adapters import ALIAS, AdapterModel, adapter_name, adapter_spec, alias_steps

VARIANT = "Variant"
"""The kind in the identity of a variant, which is no resource of its own."""


class VariantModel(InferenceModel):
    """One variant of a model, planned like a model of its own."""

    _of: Identity = PrivateAttr()
    _index: int = PrivateAttr()
    _variant: Variant = PrivateAttr()
    _routing: Routing = PrivateAttr()

    @classmethod
    def of(cls, model: InferenceModel, index: int, spec: InferenceModelSpec, status: Status | None) -> Self:
        """Return a variant of a model, with the part of the model's status that is the variant's own."""
        variant = model.spec.variants[index]
        metadata = model.metadata.model_copy(update={"name": variant_name(model.name, variant.name), "annotations": {}})
        separate = model.spec.routing.placement is VariantPlacement.SEPARATE
        own = _own_status(status, variant.name, separate=separate)
        made = cls.model_construct(metadata=metadata, spec=spec, status=own)
        made._of, made._index, made._variant = model.identity, index, variant
        made._routing = model.spec.routing
        return made

    @cached_property
    def identity(self) -> Identity:
        """Its kind, which is no resource's, with its namespace and name."""
        return Identity.of(VARIANT, self.namespace, self.name)

    @property
    def declared_identity(self) -> Identity:
        """The identity of the model that declares it."""
        return self._of

    @property
    def spec_name(self) -> str:
        """Its name in the spec of its model."""
        return self._variant.name

    @property
    def is_separate(self) -> bool:
        """Whether it has replicas of its own, on any servers."""
        return self._routing.placement is VariantPlacement.SEPARATE

    @property
    def sleeps(self) -> bool:
        """Whether a server that has other variants, too, puts it to sleep once it was not used for long."""
        return self._routing.idle_timeout > 0

    @property
    def max_concurrency(self) -> int | None:
        """Its crossover, if it is declared."""
        return self._variant.max_concurrency

    def declared_path(self, path: tuple[str | int, ...]) -> tuple[str | int, ...]:
        """Return a path of this resource as a path of the model that declares it."""
        if not path or path[0] != "spec":
            return ("spec", "variants", self._index, "name")
        return ("spec", *variant_path(self._index, self._variant, path[1:]))


class RoutedSpec(EnsembleSpec):
    """The spec of a routed model: that of an ensemble, with the rules by which a variant is chosen."""

    variants: tuple[Variant, ...] = ()
    routing: Routing = Routing()


class RoutedModel(Ensemble):
    """A model with variants, planned like an ensemble of them."""

    spec: RoutedSpec
    _declared: InferenceModel = PrivateAttr()

    @classmethod
    def of(cls, model: InferenceModel, spec: RoutedSpec, status: Status | None) -> Self:
        """Return the routed model of a model with variants."""
        made = cls.model_construct(kind="InferenceModel", metadata=model.metadata, spec=spec, status=status)
        made._declared = model
        return made

    @cached_property
    def identity(self) -> Identity:
        """The identity of the declared model."""
        return Identity.of("InferenceModel", self.namespace, self.name)

    @property
    def declared(self) -> InferenceModel:
        """The model as it was declared, with the newest metadata and status."""
        return self._declared.model_copy(update={"metadata": self.metadata, "status": self._declared.status})

    @property
    def is_separate(self) -> bool:
        """Whether each of its variants has replicas of its own, so that a server may have only some of them."""
        return self.spec.routing.placement is VariantPlacement.SEPARATE

    @property
    def variant_models(self) -> tuple[str, ...]:
        """The names of its variants' models, as planning has them."""
        return tuple(variant_name(self.name, variant.name) for variant in self.spec.variants)

    @property
    def limits(self) -> dict[str, int | None]:
        """The crossover of each variant, by the name of its model."""
        return {variant_name(self.name, variant.name): variant.max_concurrency for variant in self.spec.variants}

    @property
    def weights(self) -> dict[str, int]:
        """The weight of each variant, by the name of its model; empty where they are chosen by concurrency."""
        return {}

    def served_name_of(self, variant: Variant) -> str:
        """Return what clients call a variant's model."""
        return variant_name(self.served_name, variant.name)

    def without(self, waiting: Collection[str]) -> "RoutedModel":
        """Return it without variants that wait for their engine, unless all of them wait."""
        steps = tuple(step for step in self.spec.steps if step.model not in waiting)
        if not steps or len(steps) == len(self.spec.steps):
            return self
        return self.model_copy(update={"spec": self.spec.model_copy(update={"steps": steps})})


class AliasModel(RoutedModel):
    """A name that several adapters of a model share, planned like an ensemble of them."""

    _alias: str = PrivateAttr()

    @classmethod
    def named(cls, model: InferenceModel, alias: str, spec: RoutedSpec) -> Self:
        """Return an alias of a model's adapters."""
        made = cls.of(model, spec, None)
        made._alias = alias
        metadata = model.metadata.model_copy(update={"name": adapter_name(model.name, alias), "annotations": {}})
        return made.model_copy(update={"metadata": metadata})

    @cached_property
    def identity(self) -> Identity:
        """Its kind, which is no resource's, with its namespace and name."""
        return Identity.of(ALIAS, self.namespace, self.name)

    @property
    def declared_identity(self) -> Identity:
        """The identity of the model that declares it."""
        return self._declared.identity

    @property
    def weights(self) -> dict[str, int]:
        """The weight of each adapter, by the name of its model."""
        shared = aliases(self._declared.spec.adapters)[self._alias]
        return {
            adapter_name(self._declared.name, adapter.name): 1 if adapter.weight is None else adapter.weight
            for adapter in shared
        }


Parts = VariantModel | AdapterModel | AliasModel
"""What planning has in addition to resources."""


def expanded(resources: Iterable[Resource], statuses: Mapping[str, Status] | None = None) -> tuple[Resource, ...]:
    """Return the resources, each model with variants as a routed model and its variants, and adapters as models.

    `statuses`: by identity, where they are newer than those of the resources.
    """
    written, parts = statuses or {}, list[Resource]()
    for resource in resources:
        if isinstance(resource, InferenceModel) and (resource.spec.variants or resource.spec.adapters):
            parts += _parts(resource, written)
        else:
            parts.append(resource)
    return tuple(parts)


def has_service(part: Resource) -> TypeGuard[InferenceModel | Ensemble]:
    """Return whether what planning adds to a resource has a Service: its servers may be others than the resource's."""
    return isinstance(part, AdapterModel | AliasModel) or (isinstance(part, VariantModel) and part.is_separate)


def declared(resources: Iterable[Resource]) -> Iterator[Resource]:
    """Yield the resources as they were declared: the inverse of `expanded`."""
    for resource in resources:
        if isinstance(resource, Parts):
            continue
        yield resource.declared if isinstance(resource, RoutedModel) else resource


def declared_identity(resource: Resource) -> Identity:
    """Return the identity of the resource that declares this one: of a variant or an adapter that of its model."""
    return resource.declared_identity if isinstance(resource, Parts) else resource.identity


def declared_path(resource: Resource, path: tuple[str | int, ...]) -> tuple[str | int, ...]:
    """Return a path of a resource as a path of the resource that declares it."""
    if isinstance(resource, AliasModel):
        return ("spec", "adapters")
    return resource.declared_path(path) if isinstance(resource, VariantModel | AdapterModel) else path


def serving(resources: Iterable[Resource], waiting: Collection[str]) -> Iterator[Resource]:
    """Yield the resources, routed models without the variants among `waiting`, by name."""
    for resource in resources:
        yield resource.without(waiting) if isinstance(resource, RoutedModel) else resource


def shares_server(ensemble: Ensemble) -> bool:
    """Return whether a server must have all models of an ensemble; False for variants with replicas of their own."""
    return not (isinstance(ensemble, RoutedModel) and ensemble.is_separate)


def with_siblings(identities: Iterable[str], resources: Iterable[Resource]) -> list[str]:
    """Return the identities; with one of a variant also those of its model's other variants, and the model's."""
    names = list(identities)
    variants = [resource for resource in resources if isinstance(resource, VariantModel)]
    models = {variant.declared_identity for variant in variants if variant.identity in set(names)}
    siblings = [variant.identity for variant in variants if variant.declared_identity in models]
    return list(dict.fromkeys([*names, *siblings, *sorted(models)]))


def _parts(resource: InferenceModel, statuses: Mapping[str, Status]) -> Iterator[Resource]:
    if isinstance(resource, Parts):
        yield resource
        return
    if not resource.spec.variants:
        yield resource
        yield from _adapters(resource)
        return
    status = statuses.get(resource.identity) or resource.status
    specs = _specs(_Declared(resource))
    yield RoutedModel.of(resource, specs.routed, status)
    for index, spec in enumerate(specs.variants):
        yield VariantModel.of(resource, index, spec, status)
    yield from _adapters(resource)


def _adapters(model: InferenceModel) -> Iterator[Resource]:
    if model.spec.adapters:
        specs = _adapter_specs(_Declared(model))
        for index, spec in enumerate(specs.adapters):
            yield AdapterModel.of(model, index, spec)
        for alias, routed in specs.aliases.items():
            yield AliasModel.named(model, alias, routed)


@dataclass(frozen=True, slots=True)
class _AdapterSpecs:
    adapters: tuple[InferenceModelSpec, ...]
    aliases: Mapping[str, RoutedSpec]


@lru_cache(maxsize=1024)
def _adapter_specs(key: "_Declared") -> _AdapterSpecs:
    spec, name = key.model.spec, key.model.name
    common = {field: getattr(spec, field) for field in EnsembleSpec.model_fields if hasattr(spec, field)}
    nothing: dict[str, object] = {
        "version": 1,
        "replicas": 0,
        "min_replicas": 0,
        "max_replicas": None,
        "slo": None,
        "scaling": None,
    }
    nothing |= {"inputs": (), "outputs": (), "max_batch_size": 0, "config": {}, "chat": None, "rollout": None}
    shared = {
        alias: RoutedSpec.model_construct(**common | nothing | {"model_name": alias, "steps": steps})
        for alias, steps in alias_steps(name, spec.adapters).items()
    }
    return _AdapterSpecs(tuple(adapter_spec(spec, adapter) for adapter in spec.adapters), shared)


@dataclass(frozen=True, slots=True)
class _Specs:
    routed: RoutedSpec
    variants: tuple[InferenceModelSpec, ...]


@dataclass(frozen=True, slots=True, eq=False)
class _Declared:
    """A cache key: two are the same that have one name and one spec object, so that unchanged specs stay the same."""

    model: InferenceModel

    def __hash__(self) -> int:
        return hash((self.model.name, id(self.model.spec)))

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, _Declared) and self.model.spec is other.model.spec and self.model.name == other.model.name
        )


@lru_cache(maxsize=1024)
def _specs(key: _Declared) -> _Specs:
    spec, name = key.model.spec, key.model.name
    steps = tuple(
        Step.model_construct(model=variant_name(name, variant.name), inputs={}, outputs={}) for variant in spec.variants
    )
    routed = RoutedSpec.model_construct(
        **{field: getattr(spec, field) for field in EnsembleSpec.model_fields if hasattr(spec, field)}
        | {
            "version": spec.default_version,
            "max_batch_size": spec.batch_size or 0,
            "steps": steps,
            "config": {},
            "variants": spec.variants,
            "routing": spec.routing,
        }
    )
    return _Specs(routed, tuple(variant_spec(spec, variant) for variant in spec.variants))


def _own_status(status: Status | None, variant: str, *, separate: bool) -> InferenceModelStatus | None:
    """Return what a model's status has of one variant: its engines, and its scaling if it has replicas of its own. One
    that had none so far begins with as many as the model.
    """
    if not isinstance(status, InferenceModelStatus):
        return None
    own = next((entry for entry in status.variants if entry.name == variant), None)
    scaling = own.scaling if own is not None else None
    if scaling is None and separate and status.scaling is not None:
        scaling = ScalingStatus(replicas=status.scaling.replicas, desired=status.scaling.replicas)
    return InferenceModelStatus(engines=own.engines if own is not None else (), scaling=scaling)
