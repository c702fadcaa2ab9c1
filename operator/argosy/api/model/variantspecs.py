"""Specs of a model's variants: the model's own with the fields that a variant sets."""

from collections.abc import Iterator
from typing import TypeVar

from pydantic.alias_generators import to_camel

from argosy.api.model.modelfields import InferenceModelFields
from argosy.api.model.variants import Routing, Variant, VariantPlacement, crossover_faults
from argosy.api.values.base import Fault, Rule

Spec = TypeVar("Spec", bound=InferenceModelFields)

_ROUTER_FIELDS: dict[str, object] = {"variants": (), "routing": Routing(), "model_name": None, "chat": None}
"""Fields that count for the model as a whole."""
_SCALE_FIELDS: dict[str, object] = {
    "replicas": 0,
    "min_replicas": 0,
    "max_replicas": None,
    "slo": None,
    "scaling": None,
}
"""Fields of replicas. A variant that shares its servers with the others has as many as the model."""


SEPARATOR = "--"
"""What is between the name of a model and that of its variant, adapter or alias, where these are planned and routed."""


def variant_name(model: str, variant: str) -> str:
    """Return the name under which a variant of a model is planned and served."""
    return f"{model}{SEPARATOR}{variant}"


def variant_spec(spec: Spec, variant: Variant) -> Spec:
    """Return the spec of one variant."""
    changes = dict(_ROUTER_FIELDS)
    if spec.routing.placement is VariantPlacement.SAME_SERVER:
        changes |= _SCALE_FIELDS
    if variant.model_format is not None:
        changes |= {"engine": None, "config": {}}
    if variant.storage_uri is not None:
        changes["digest"] = None
    if spec.model_name is not None:
        changes["model_name"] = variant_name(spec.model_name, variant.name)
    return spec.model_copy(update=changes | variant.overrides)


def variant_faults(spec: InferenceModelFields) -> Iterator[Fault]:
    """Yield what is wrong with the spec of a variant, at the variant's own field, and with the model's versions."""
    if not spec.variants:
        return
    if len(spec.versions) > 0:
        yield Fault("a model with variants has one version: set version and storageUri", ("versions",))
    own = {(fault.message, fault.path) for fault in _faults(spec)}
    for index, variant in enumerate(spec.variants):
        for fault in _faults(variant_spec(spec, variant)):
            if (fault.message, fault.path) not in own:
                yield Fault(fault.message, variant_path(index, variant, fault.path), fault.reason)


def _separate_faults(spec: InferenceModelFields) -> Iterator[Fault]:
    """Yield what variants with servers of their own cannot have: no server, to which no request could change, and
    adapters.
    """
    if not spec.variants or spec.routing.placement is VariantPlacement.SAME_SERVER:
        return
    message = (
        "is 0, and variants with routing.placement Separate need a server each, so that requests can change from one "
        "to the other; set 1 or more"
    )
    if not spec.min_replicas:
        yield Fault(message, ("minReplicas",))
    if spec.adapters:
        yield Fault(
            "a model whose variants have servers of their own takes no adapters; set routing.placement to SameServer",
            ("adapters",),
        )
    for index, schedule in enumerate(spec.scaling.schedules if spec.scaling is not None else ()):
        if not schedule.min_replicas:
            yield Fault(message, ("scaling", "schedules", index, "minReplicas"))


def variant_path(index: int, variant: Variant, path: tuple[str | int, ...]) -> tuple[str | int, ...]:
    """Return where a path of a variant's spec is in the model's: below the variant if that sets the field."""
    set_by_variant = {to_camel(field) for field in variant.overrides} | set(variant.overrides)
    return ("variants", index, *path) if path and path[0] in set_by_variant else path


def _faults(spec: InferenceModelFields) -> Iterator[Fault]:
    for rule in type(spec).rules:
        if "variants" not in rule.reads:
            yield from rule.check(spec)


VARIANT_RULES = (
    Rule(("variants",), lambda spec: crossover_faults(spec.variants)),
    Rule(("variants", "routing", "min_replicas", "scaling", "adapters"), _separate_faults),
    # It reads all fields that any rule of a model reads.
    Rule(tuple(InferenceModelFields.model_fields), variant_faults),
)
