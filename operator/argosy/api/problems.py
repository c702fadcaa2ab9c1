"""Problems of manifests: the file, the resource, the field, and what to do."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from argosy.api.model.rollout.steps import HEADER
from argosy.api.model.scaling.schedule import END, START
from argosy.api.model.variants import TIME
from argosy.api.pool.openai import SECRET_KEY
from argosy.api.pool.serverflags import FLAG, RATE_LIMIT_RESOURCE
from argosy.api.pool.tracing import WEB
from argosy.api.values.capability import PATTERN as CAPABILITY
from argosy.api.values.meta import LABEL, LABEL_KEY, LABEL_VALUE, MODEL_NAME, SUBDOMAIN
from argosy.api.values.storage import ABSOLUTE_FOLDER, DIGEST, RELATIVE_PATH
from argosy_common.wording import did_you_mean, shortened

_SHOWN = 80
PATTERNS = {
    SUBDOMAIN: "a DNS name: lower-case letters, digits, '-' and '.', beginning and ending with a letter or digit",
    LABEL: "a DNS label: lower-case letters, digits and '-', beginning and ending with a letter or digit",
    MODEL_NAME: "a model's name: letters, digits and any of _ . : @ = ~ + -, beginning with a letter, a digit or _",
    RELATIVE_PATH: "a path beneath the folder: no / at its beginning, and no . or .. in it",
    ABSOLUTE_FOLDER: "a folder's path: / at its beginning, none at its end, and no . or .. in it",
    DIGEST: "a digest: sha256: and 64 lower-case hexadecimal digits",
    LABEL_VALUE: "the value of a label: letters, digits, '-', '_' and '.', beginning and ending with a letter or digit",
    LABEL_KEY: "the key of a label: a name, after an optional DNS name and '/', such as topology.kubernetes.io/zone",
    CAPABILITY: 'a range of compute capabilities, in quotes, such as ">= 8.9", "9.0" or ">= 8.0, < 9.0"',
    FLAG: "a flag of the server; write each as --name=value",
    RATE_LIMIT_RESOURCE: "the name of a resource: no colon and no space",
    START: 'a time of day from "00:00" to "23:59", in quotes',
    END: 'a time of day from "00:00" to "24:00", in quotes',
    HEADER: "the name of a header: letters, digits and '-', without spaces or colons",
    SECRET_KEY: "the key of a Secret: letters, digits, '-', '_' and '.'",
    TIME: "a time of RFC 3339, such as 2026-05-04T12:00:00Z",
    WEB: "a URL that begins with http:// or https://",
}
"""Descriptions of the patterns of texts, for messages."""


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """An error in a manifest. `resource` is `Kind namespace/name`, or `document N` if the name cannot be read.

    `reason` is that of the condition Valid; if it is empty, the path decides.
    """

    file: str
    resource: str
    path: str
    message: str
    reason: str = ""

    @property
    def names_resource(self) -> bool:
        """Whether it names a resource, not a file or a document without a name."""
        return "/" in self.resource

    def __str__(self) -> str:
        where = f"{self.file}: {self.resource}" if self.resource else self.file
        return f"{where}: {self.path}: {self.message}" if self.path else f"{where}: {self.message}"


def field_path(location: Iterable[str | int]) -> str:
    """Return a path such as `spec.inputs[0].dims[1]`. Keys with dots are quoted in brackets."""
    path = ""
    for part in location:
        if isinstance(part, int):
            path += f"[{part}]"
        elif part.replace("_", "").replace("-", "").isalnum():
            path += f".{part}" if path else part
        else:
            path += f"[{part!r}]"
    return path


def explain(error: ValidationError, model: type[BaseModel]) -> Iterator[tuple[str, str]]:
    """Yield the path and message of each error of a validation of `model`, with the manifest's field names."""
    for detail in error.errors(include_url=False):
        if not _is_echo(detail):
            location = tuple(part for part in detail["loc"] if part != "[key]")
            yield field_path(location), _message(detail, location, model)


def _is_echo(detail: ErrorDetails) -> bool:
    """Return whether a list counts as short only because its invalid entries, which have errors, are not counted."""
    return detail["type"] == "too_short" and len(detail["input"]) >= detail.get("ctx", {})["min_length"]


def _message(detail: ErrorDetails, location: tuple[str | int, ...], model: type[BaseModel]) -> str:
    kind, value = detail["type"], _shown(detail["input"])
    context: dict[str, Any] = detail.get("ctx", {})
    if kind in ("rule", "value", "value_error"):
        return str(context.get("error", context.get("message", detail["msg"])))
    if kind == "extra_forbidden":
        return _unknown_field(location, model)
    if kind == "enum":
        names = re.findall(r"'([^']*)'", context["expected"])
        return f"{value} is none of {', '.join(names)}{_hint(detail['input'], names)}"
    if kind == "string_pattern_mismatch":
        return f"{value} is not {PATTERNS[context['pattern']]}"
    if kind == "too_short":
        context = {**context, "actual_length": len(detail["input"])}
    if kind in _MESSAGES:
        return _MESSAGES[kind].format(found=value, **context) + _way_out(detail, location, model)
    return f"{detail['msg'][0].lower()}{detail['msg'][1:]}; found {value}"


_MESSAGES = {
    "missing": "is required",
    "int_type": "expected a whole number; found {found}",
    "int_parsing": "expected a whole number; found {found}",
    "int_from_float": "expected a whole number; found {found}",
    "float_type": "expected a number; found {found}",
    "bool_type": "expected true or false; found {found}",
    "string_type": "expected text; found {found} (quote it to make it text)",
    "tuple_type": "expected a list; found {found}",
    "dict_type": "expected a map; found {found}",
    "model_type": "expected a map of fields; found {found}",
    "literal_error": "must be {expected}; found {found}",
    "greater_than": "must be more than {gt}; found {found}",
    "greater_than_equal": "must be {ge} or more; found {found}",
    "less_than_equal": "must be {le} or less; found {found}",
    "string_too_short": "must have {min_length} or more characters; found {found}",
    "string_too_long": "must have at most {max_length} characters; found {found}",
    "too_short": "must have {min_length} or more entries; found {actual_length}",
    "too_long": "must have at most {max_length} entries; found {actual_length}",
}


def _way_out(detail: ErrorDetails, location: tuple[str | int, ...], model: type[BaseModel]) -> str:
    """Return how to write a value of the wrong type that is close to a valid one."""
    value = detail["input"]
    if detail["type"] == "int_type" and isinstance(value, str) and value.isdecimal():
        return f"; write it without quotes: {value}"
    target = _model_at(location, model) if detail["type"] == "model_type" and isinstance(value, str) else None
    return f"; write {{name: {value}}}" if target is not None and "name" in target.model_fields else ""


def _hint(value: Any, names: list[str]) -> str:
    hint = did_you_mean(value, names) if isinstance(value, str) else ""
    return hint if hint.startswith(";") else ""


def _shown(value: Any) -> str:
    return shortened(repr(value), _SHOWN)


def _unknown_field(location: tuple[str | int, ...], model: type[BaseModel]) -> str:
    parent = _model_at(location[:-1], model)
    names = [field.alias or name for name, field in parent.model_fields.items()] if parent else []
    return f"unknown field{did_you_mean(str(location[-1]), names) or '; this map takes none'}"


def _model_at(location: tuple[str | int, ...], model: type[BaseModel]) -> type[BaseModel] | None:
    """Return the model at a location, within lists, maps and optional fields."""
    at: Any = model
    for part in location:
        at = _bare(at)
        if isinstance(at, type) and issubclass(at, BaseModel):
            fields = {field.alias or name: field for name, field in at.model_fields.items()}
            at = fields[part].annotation if part in fields else None
        elif get_origin(at) is dict:
            at = get_args(at)[1]
        elif get_origin(at) is tuple:
            at = get_args(at)[0]
        else:
            return None
    at = _bare(at)
    return at if isinstance(at, type) and issubclass(at, BaseModel) else None


def _bare(annotation: Any) -> Any:
    """Return the annotation without `Annotated` and `| None`."""
    while get_origin(annotation) in (Annotated, Union, UnionType):
        annotation = next(part for part in get_args(annotation) if part is not NoneType)
    return annotation
