"""Structural schemas, which are Kubernetes' subset of OpenAPI 3.0, from pydantic's JSON Schemas of models."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from argosy.api.values.base import FrozenModel, Rule

Schema = dict[str, Any]
UNCHANGED = " || (oldSelf.hasValue() && "
"""The beginning of the part of a rule that accepts updates which leave its fields unchanged."""
_COPIED = (
    "type",
    "description",
    "format",
    "enum",
    "pattern",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
    "required",
)


def structural_schema(model: type[FrozenModel], defaults: bool = True) -> Schema:
    """Return the schema of a model with everything inlined: no references, unions or nulls.

    With `defaults` the API server fills in plain values that are left out, but neither objects nor values within lists:
    tools that merge lists as a whole (kubectl apply, GitOps) would see a difference.
    """
    source = model.model_json_schema(by_alias=True)
    return _Converter(source.get("$defs", {}), _models(model), defaults).convert(source)


@dataclass(frozen=True, slots=True)
class _Converter:
    """Converts a JSON schema with `definitions` into a structural one.

    `correlated` says whether rules can read an update's old value: within a list only if the list has map keys.
    """

    definitions: Schema
    models: dict[str, type[FrozenModel]]
    defaults: bool
    correlated: bool = True

    def convert(self, source: Schema) -> Schema:
        flat = self._flat(source)
        converted = {key: flat[key] for key in _COPIED if key in flat}
        converted |= {key: value for key, value in flat.items() if key.startswith("x-kubernetes-")}
        if "const" in flat:
            converted["enum"] = [flat["const"]]
        if "anyOf" in flat:
            converted["anyOf"] = flat["anyOf"]
        converted |= _bounds(flat)
        if self.defaults and _is_plain(flat.get("default")):
            converted["default"] = flat["default"]
        converted |= self._children(flat)
        return converted | self._validations(flat)

    def _children(self, flat: Schema) -> Schema:
        children: Schema = {}
        if "items" in flat:
            correlated = self.correlated and flat.get("x-kubernetes-list-type") == "map"
            children["items"] = replace(self, defaults=False, correlated=correlated).convert(flat["items"])
        if flat.get("properties"):  # API servers drop an empty one, and what is applied again would differ
            children["properties"] = {name: self.convert(inner) for name, inner in flat["properties"].items()}
        keyed = flat.get("patternProperties", {})  # structural schemas have no patterns of keys
        values = flat.get("additionalProperties") or next(iter(keyed.values()), None)
        if isinstance(values, dict) and "properties" not in flat:
            children["additionalProperties"] = self.convert(values)
        return children

    def _flat(self, source: Schema) -> Schema:
        """Return the schema with its reference and its `| null` resolved; its own keys have precedence."""
        own = {key: value for key, value in source.items() if key != "$ref"}
        if "$ref" in source:
            definition = self.definitions[source["$ref"].removeprefix("#/$defs/")]
            return self._flat(definition) | own
        choices = [choice for choice in source.get("anyOf", ()) if choice.get("type") != "null"]
        if len(choices) == 1:
            del own["anyOf"]
            return self._flat(choices[0]) | own
        return own

    def _validations(self, flat: Schema) -> Schema:
        model = self.models.get(flat.get("title", ""))
        if model is None or flat.get("type") != "object":
            return {}
        validations = [self._validation(model, rule) for rule in model.rules if rule.cel]
        return {"x-kubernetes-validations": validations} if validations else {}

    def _validation(self, model: type[FrozenModel], rule: Rule) -> Schema:
        """Return a rule that checks an update only if it changes the fields that the rule reads.

        API servers would otherwise reject every update of a stored object that breaks a newer rule, below a free map
        even updates of its labels, its status and its finalizers.
        """
        if not self.correlated or model.model_fields.keys() <= set(rule.reads):
            return {"rule": rule.cel, "message": rule.says}
        names = [model.model_fields[field].alias or field for field in rule.reads]
        same = " && ".join(
            f"has(self.{name}) == has(oldSelf.value().{name}) && "
            f"(!has(self.{name}) || self.{name} == oldSelf.value().{name})"
            for name in names
        )
        return {"rule": f"({rule.cel}){UNCHANGED}{same})", "message": rule.says, "optionalOldSelf": True}


def _bounds(flat: Schema) -> Schema:
    """Return the bounds of a number: OpenAPI 3.0 has flags for exclusive ones."""
    bounds: Schema = {}
    for exclusive, bound in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        if exclusive in flat:
            bounds |= {bound: flat[exclusive], exclusive: True}
    if flat.get("type") == "integer":
        bounds["format"] = "int64"
    return bounds


def _is_plain(value: Any) -> bool:
    """Return whether a default is a plain value. Some API servers reject empty texts, which equal absent ones."""
    return isinstance(value, str | int | float | bool) and value != ""


def _models(model: type[FrozenModel]) -> dict[str, type[FrozenModel]]:
    """Return the model and all models within it by name."""
    models: dict[str, type[FrozenModel]] = {}
    waiting = [model]
    while waiting:
        current = waiting.pop()
        if current.__name__ not in models:
            models[current.__name__] = current
            for field in current.model_fields.values():
                waiting += _named(field.annotation)
    return models


def _named(annotation: Any) -> Iterator[type[FrozenModel]]:
    if get_origin(annotation) in (Annotated, Union, UnionType, dict, tuple):
        for part in get_args(annotation):
            if part not in (NoneType, Ellipsis):
                yield from _named(part)
    elif isinstance(annotation, type) and issubclass(annotation, FrozenModel):
        yield annotation
