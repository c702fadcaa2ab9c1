"""A model's structural schema: what Kubernetes takes of OpenAPI 3.0, from what pydantic says in JSON Schema."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from argosy.api.values.base import FrozenModel, Rule

Schema = dict[str, Any]
UNCHANGED = " || (oldSelf.hasValue() && "
"""How the part of a rule begins that lets an update pass which leaves alone what the rule reads."""
_KEPT = (
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

    With `defaults` plain values that are left out are filled in by the API server; objects never are, nor what stands
    in a list: tools that merge lists as a whole (kubectl apply, GitOps) would find a change that is none.
    """
    source = model.model_json_schema(by_alias=True)
    return _Converter(source.get("$defs", {}), _models(model), defaults).convert(source)


@dataclass(frozen=True, slots=True)
class _Converter:
    """Turns one JSON schema, whose definitions it knows, into a structural one.

    `correlated`: an update's old value is known there. Of a list's entry it is where the list has map keys.
    """

    definitions: Schema
    models: dict[str, type[FrozenModel]]
    defaults: bool
    correlated: bool = True

    def convert(self, source: Schema) -> Schema:
        flat = self._flat(source)
        found = {key: flat[key] for key in _KEPT if key in flat}
        found |= {key: value for key, value in flat.items() if key.startswith("x-kubernetes-")}
        if "const" in flat:
            found["enum"] = [flat["const"]]
        if "anyOf" in flat:
            found["anyOf"] = flat["anyOf"]
        found |= _bounds(flat)
        if self.defaults and _is_plain(flat.get("default")):
            found["default"] = flat["default"]
        found |= self._children(flat)
        return found | self._validations(flat)

    def _children(self, flat: Schema) -> Schema:
        found: Schema = {}
        if "items" in flat:
            correlated = self.correlated and flat.get("x-kubernetes-list-type") == "map"
            found["items"] = replace(self, defaults=False, correlated=correlated).convert(flat["items"])
        if flat.get("properties"):  # API servers drop an empty one, and what is applied again would differ
            found["properties"] = {name: self.convert(inner) for name, inner in flat["properties"].items()}
        values = flat.get("additionalProperties")
        if isinstance(values, dict) and "properties" not in flat:
            found["additionalProperties"] = self.convert(values)
        return found

    def _flat(self, source: Schema) -> Schema:
        """The schema with its reference and its `| null` resolved; what stands beside them wins."""
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
        found = [self._validation(model, rule) for rule in model.rules if rule.cel]
        return {"x-kubernetes-validations": found} if found else {}

    def _validation(self, model: type[FrozenModel], rule: Rule) -> Schema:
        """A rule that judges an update only where it changes what the rule reads.

        Where the object has other fields, API servers by themselves would refuse every update of an object that broke
        the rule before there was one; below a free map even of its labels, its status and its finalizers.
        """
        if not self.correlated or model.model_fields.keys() <= set(rule.reads):
            return {"rule": rule.cel, "message": rule.says}
        names = [model.model_fields[each].alias or each for each in rule.reads]
        same = " && ".join(
            f"has(self.{name}) == has(oldSelf.value().{name}) && "
            f"(!has(self.{name}) || self.{name} == oldSelf.value().{name})"
            for name in names
        )
        return {"rule": f"({rule.cel}){UNCHANGED}{same})", "message": rule.says, "optionalOldSelf": True}


def _bounds(flat: Schema) -> Schema:
    """OpenAPI 3.0 says that a bound is exclusive with a flag beside it."""
    found: Schema = {}
    for exclusive, bound in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        if exclusive in flat:
            found |= {bound: flat[exclusive], exclusive: True}
    if flat.get("type") == "integer":
        found["format"] = "int64"
    return found


def _is_plain(value: Any) -> bool:
    """Objects are not filled in, and empty texts mean what their absence means (some API servers refuse them)."""
    return isinstance(value, str | int | float | bool) and value != ""


def _models(model: type[FrozenModel]) -> dict[str, type[FrozenModel]]:
    """Every model that is reached from one, by its name."""
    found: dict[str, type[FrozenModel]] = {}
    waiting = [model]
    while waiting:
        current = waiting.pop()
        if current.__name__ not in found:
            found[current.__name__] = current
            for field in current.model_fields.values():
                waiting += _named(field.annotation)
    return found


def _named(annotation: Any) -> Iterator[type[FrozenModel]]:
    if get_origin(annotation) in (Annotated, Union, UnionType, dict, tuple):
        for part in get_args(annotation):
            if part not in (NoneType, Ellipsis):
                yield from _named(part)
    elif isinstance(annotation, type) and issubclass(annotation, FrozenModel):
        yield annotation
