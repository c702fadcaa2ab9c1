"""Specs of a model's variants: the model's own with the fields that a variant sets."""

from typing import TypeVar

from pydantic.alias_generators import to_camel

from argosy.api.model.modelfields import InferenceModelFields
from argosy.api.model.variants import Routing, Variant, VariantPlacement

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


def variant_path(index: int, variant: Variant, path: tuple[str | int, ...]) -> tuple[str | int, ...]:
    """Return where a path of a variant's spec is in the model's: below the variant if that sets the field."""
    set_by_variant = {to_camel(field) for field in variant.overrides} | set(variant.overrides)
    return ("variants", index, *path) if path and path[0] in set_by_variant else path
