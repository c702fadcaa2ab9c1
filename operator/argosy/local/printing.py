"""Resources as kubectl prints them, by the printer columns of the CRDs."""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from argosy.api.crd.crds import DEFINITIONS, Column, Definition

NONE = "<none>"
_PART = re.compile(r"\.(\w+)(?:\[\?\(@\.(\w+)==\"([^\"]*)\"\)\])?")
_UNITS = (("d", 86400), ("h", 3600), ("m", 60))


def definition_of(kind: str) -> Definition | None:
    """Return the kind with a name that kubectl takes, as `InferenceModel` or `amodel`, or a short one, as `models`.

    Case is ignored.
    """
    word = kind.lower()
    names = {name: definition for definition in DEFINITIONS for name in _names(definition)}
    return names.get(word)


def _names(definition: Definition) -> tuple[str, ...]:
    kind = definition.kind.__name__.lower()
    brief = kind.removeprefix("inference").removeprefix("serving")
    return kind, definition.plural, definition.short_name, brief, f"{brief}s"


def kinds() -> list[str]:
    """Return the plural names of all kinds."""
    return [definition.plural for definition in DEFINITIONS]


def table(definition: Definition, documents: Sequence[Mapping[str, Any]], wide: bool, now: datetime) -> Iterator[str]:
    """Yield the lines of a table of resources. `now` has a time zone."""
    columns = [column for column in definition.columns if wide or not column.priority]
    namespaces = len({_namespace(document) for document in documents}) > 1
    heading = [*(["NAMESPACE"] if namespaces else []), "NAME", *(column.name.upper() for column in columns)]
    lines = [heading]
    for document in documents:
        cells = [cell(document, column, now) for column in columns]
        lines.append([*([_namespace(document)] if namespaces else []), document["metadata"]["name"], *cells])
    yield from aligned(lines)


def aligned(lines: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield rows of equal length as lines of columns: padded with spaces, two between them."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        yield "  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip()


def cell(document: Mapping[str, Any], column: Column, now: datetime) -> str:
    """Return the value of one column for a resource."""
    value = find(document, column.json_path)
    if value in (None, ""):
        return NONE
    if column.kind == "date":
        return age(now - datetime.fromisoformat(str(value)))
    return str(value)


def find(document: Any, path: str) -> Any:
    """Return the value at a JSONPath of fields and `[?(@.field=="value")]` filters, or None."""
    for field, key, value in _PART.findall(path):
        document = document.get(field) if isinstance(document, Mapping) else None
        if key:
            document = next((item for item in document or () if item.get(key) == value), None)
    return document


def age(span: timedelta) -> str:
    """Return a time span in its largest unit, as kubectl prints it: 42s, 7m, 3h, 12d."""
    seconds = max(0, int(span.total_seconds()))
    for unit, size in _UNITS:
        if seconds >= 2 * size or (unit == "d" and seconds >= size):
            return f"{seconds // size}{unit}"
    return f"{seconds}s"


def _namespace(document: Mapping[str, Any]) -> str:
    return str(document["metadata"].get("namespace", "default"))
