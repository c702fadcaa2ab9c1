"""Adapters of models, as planning sees them: a model without a footprint for each, on every server of its base model.

An alias is a routed model whose variants are adapters, chosen by weight.
"""

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Final, Self

from pydantic import PrivateAttr

from argosy.api import InferenceModel, InferenceModelSpec, Step
from argosy.api.model.adapters import TAKES_ADAPTERS, Adapter, aliases
from argosy.api.model.footprint import Device, Footprint
from argosy.api.model.variantspecs import SEPARATOR, variant_name, variant_spec
from argosy.api.values.identity import Identity

ADAPTER, ALIAS = "Adapter", "Alias"
"""The kinds in identities of adapters and of aliases, which are no resources of their own."""
_OF_ITS_MODEL: Final = ("pool_ref", "model_format", "storage", "priority", "rollout", "revision_history_limit")
"""The fields of a spec that an adapter has of its model; others are an adapter's own, or are unset."""


def adapter_name(model: str, adapter: str) -> str:
    """Return the name under which an adapter of a model is planned: a Kubernetes name, whatever clients call it."""
    plain = "".join(letter if letter.isalnum() and letter.isascii() else "-" for letter in adapter).strip("-").lower()
    return f"{model}{SEPARATOR}{plain or 'adapter'}"


class AdapterModel(InferenceModel):
    """One adapter of a model, planned like a model of its own."""

    _of: Identity = PrivateAttr()
    _base: str = PrivateAttr()
    _base_served_name: str = PrivateAttr()
    _loaded_into: tuple[str, ...] = PrivateAttr()
    _index: int = PrivateAttr()

    @classmethod
    def of(cls, model: InferenceModel, index: int, spec: InferenceModelSpec) -> Self:
        """Return an adapter of a model."""
        adapter = model.spec.adapters[index]
        name = adapter_name(model.name, adapter.name)
        metadata = model.metadata.model_copy(update={"name": name, "annotations": {}})
        made = cls.model_construct(metadata=metadata, spec=spec, status=None)
        made._of, made._index = model.identity, index
        made._base, made._base_served_name = model.name, model.served_name
        variants = (variant_name(model.name, variant.name) for variant in model.spec.variants)
        made._loaded_into = tuple(variants) or (model.name,)
        return made

    @cached_property
    def identity(self) -> Identity:
        """Its kind, which is no resource's, with its namespace and name."""
        return Identity.of(ADAPTER, self.namespace, self.name)

    @property
    def declared_identity(self) -> Identity:
        """The identity of the model that declares it."""
        return self._of

    @property
    def base(self) -> str:
        """The name of its base model's resource."""
        return self._base

    @property
    def loaded_into(self) -> tuple[str, ...]:
        """The models whose servers it is on, by name: its base model, or the variants of that."""
        return self._loaded_into

    @property
    def base_served_name(self) -> str:
        """What clients call its base model."""
        return self._base_served_name

    def declared_path(self, path: tuple[str | int, ...]) -> tuple[str | int, ...]:
        """Return a path of this resource as a path of the model that declares it."""
        field = path[1] if len(path) > 1 and path[1] in ("storageUri", "digest") else "name"
        return ("spec", "adapters", self._index, field)


def ties(models: Iterable[InferenceModel]) -> list[tuple[str, ...]]:
    """Return the models that must share a server because one is an adapter of the other, by name, base first.

    Variants of one model share a server already, so that one of them stands for all.
    """
    every = list(models)
    names = {model.name for model in every}
    adapters = (model for model in every if isinstance(model, AdapterModel))
    tied = ((next((name for name in adapter.loaded_into if name in names), ""), adapter.name) for adapter in adapters)
    return [(base, adapter) for base, adapter in tied if base]


def adapter_spec(spec: InferenceModelSpec, adapter: Adapter) -> InferenceModelSpec:
    """Return the spec of an adapter: files of one version, with the credentials of its model, and nothing else.

    Its format is that of its model, or of the first variant that takes adapters.
    """
    specs = [variant_spec(spec, variant) for variant in spec.variants] or [spec]
    taker = next((candidate for candidate in specs if candidate.backend in TAKES_ADAPTERS), specs[0])
    return InferenceModelSpec.model_construct(
        **{field: getattr(taker, field) for field in _OF_ITS_MODEL},
        model_name=adapter.name,
        version=1,
        storage_uri=adapter.storage_uri,
        digest=adapter.digest,
        max_batch_size=0,
        footprint=Footprint(device=Device.CPU),
        replicas=0,
        min_replicas=0,
    )


def alias_steps(model: str, adapters: Sequence[Adapter]) -> dict[str, tuple[Step, ...]]:
    """Return the adapters of each alias of a model, as steps."""
    return {
        alias: tuple(
            Step.model_construct(model=adapter_name(model, adapter.name), inputs={}, outputs={}) for adapter in shared
        )
        for alias, shared in aliases(adapters).items()
    }
