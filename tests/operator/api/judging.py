"""The CRDs as these tests judge bodies by them: the schema, defaults and rules, as an API server has them."""

from collections import Counter
from collections.abc import Iterator
from functools import cache
from typing import Any

import celpy
from celpy.adapter import json_to_cel
from jsonschema import Draft202012Validator
from jsonschema.protocols import Validator
from jsonschema.validators import extend

from argosy.api.crd.crds import DEFINITIONS, crd
from argosy.api.crd.schema import UNCHANGED

Body = dict[str, Any]
Schema = dict[str, Any]


@cache
def root(kind: str) -> Schema:
    definition = next(definition for definition in DEFINITIONS if definition.kind.__name__ == kind)
    result: Schema = crd(definition)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return result


def walk(schema: Schema, path: str = "") -> Iterator[tuple[str, Schema]]:
    yield path, schema
    for name, inner in schema.get("properties", {}).items():
        yield from walk(inner, f"{path}.{name}")
    for key in ("items", "additionalProperties"):
        if key in schema:
            yield from walk(schema[key], f"{path}.{key}")


def strict(schema: Schema) -> Schema:
    """Return the schema as the API server sees it with strict field validation: unknown fields are refused."""
    result = {key: value for key, value in schema.items() if not key.startswith("exclusive")}
    if schema.get("exclusiveMinimum"):
        result["exclusiveMinimum"] = result.pop("minimum")
    for key in ("items", "additionalProperties"):
        if key in schema:
            result[key] = strict(schema[key])
    closed = not {"additionalProperties", "x-kubernetes-preserve-unknown-fields"} & schema.keys()
    if schema.get("type") == "object" and closed:
        result["properties"] = {name: strict(inner) for name, inner in schema.get("properties", {}).items()}
        result["additionalProperties"] = False
    return result


def validator(schema: Schema) -> Validator:
    """Return a validator of the schema for which 1e10 is no integer, as for an API server."""
    types = Draft202012Validator.TYPE_CHECKER.redefine("integer", lambda _, value: type(value) is int)
    result: Validator = extend(Draft202012Validator, type_checker=types)(schema)
    return result


@cache
def _validator_of(kind: str) -> Validator:
    return validator(strict(root(kind)))


def fill(schema: Schema, value: Any) -> None:
    """Set the defaults of a schema in a value, as the API server does."""
    if isinstance(value, list):
        for item in value:
            fill(schema["items"], item)
    elif isinstance(value, dict):
        for name, inner in schema.get("properties", {}).items():
            if name not in value and "default" in inner:
                value[name] = inner["default"]
            if name in value:
                fill(inner, value[name])
        for item in value.values() if "additionalProperties" in schema else ():
            fill(schema["additionalProperties"], item)


def broken(schema: Schema, value: Any) -> list[str]:
    """Return the messages of the rules that a new value breaks, whose defaults are filled in."""
    result: list[str] = []
    if isinstance(value, list):
        return [message for item in value for message in broken(schema["items"], item)]
    if isinstance(value, dict):
        for name, inner in schema.get("properties", {}).items():
            if name in value:
                result += broken(inner, value[name])
        if isinstance(schema.get("additionalProperties"), dict):
            result += [message for item in value.values() for message in broken(schema["additionalProperties"], item)]
    for rule in schema.get("x-kubernetes-validations", ()):
        if not holds(rule["rule"].partition(UNCHANGED)[0], cel_value(schema, value)):
            result.append(rule["message"])
    return result


def holds(rule: str, value: Any) -> bool:
    """Return whether a value keeps a rule."""
    return bool(_program(rule).evaluate({"self": value}))


@cache
def _program(rule: str) -> celpy.Runner:
    environment = celpy.Environment()
    return environment.program(environment.compile(rule))


def cel_value(schema: Schema, value: Any) -> Any:
    """Return a value with the types of its schema: in a number's field 100 is a double, as 0.5 is."""
    if isinstance(value, list):
        return celpy.celtypes.ListType([cel_value(schema.get("items", {}), item) for item in value])
    if isinstance(value, dict):
        inner = schema.get("properties", {})
        other = schema.get("additionalProperties", {})
        typed = {
            celpy.celtypes.StringType(name): cel_value(inner.get(name, other), item) for name, item in value.items()
        }
        return celpy.celtypes.MapType(typed)
    if schema.get("type") == "number":
        return celpy.celtypes.DoubleType(value)
    return json_to_cel(value)


def repeated(schema: Schema, value: Any) -> list[str]:
    """Return the keys that occur twice in a list of type map or set."""
    if isinstance(value, list):
        keys = schema.get("x-kubernetes-list-map-keys", ())
        counts = Counter(str([item.get(key) for key in keys]) for item in value) if keys else Counter[str]()
        below = [key for item in value for key in repeated(schema["items"], item)]
        return [key for key, count in counts.items() if count > 1] + below
    if isinstance(value, dict):
        inner = schema.get("properties", {})
        return [key for name in value.keys() & inner.keys() for key in repeated(inner[name], value[name])]
    return []


def refusals(body: Body) -> list[str]:
    """Return why an API server with these CRDs would refuse a new body; its defaults are filled in."""
    schema = root(body["kind"])
    wrong = [error.message for error in _validator_of(body["kind"]).iter_errors(body | {"metadata": {}})]
    if wrong:
        return wrong
    fill(schema["properties"]["spec"], body["spec"])
    return repeated(schema, body) + broken(schema, body)
