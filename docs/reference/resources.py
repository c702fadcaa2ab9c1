"""The fields of the three resources, from their CustomResourceDefinitions."""

from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from argosy.api.crd.crds import crd_files

Schema = Mapping[str, Any]
NOTE = "<!-- Written by `python -m docs.reference` from {source}. -->\n"
_USE = {
    "spec": (
        "Fields of `spec`. `[]` stands for an entry of a list, `*` for a key of a map. A field is **required** within "
        "the object that has it.\n\n"
    ),
    "status": "Fields of `status`, written by Argosy. `[]` stands for an entry of a list, `*` for a key of a map.\n\n",
}
_HEADER = "| field | type | meaning |\n|---|---|---|\n"


def resource_pages() -> dict[str, str]:
    """Return a page for the spec and one for the status of each kind, by file name."""
    pages = {}
    for text in crd_files().values():
        definition = yaml.safe_load(text)
        kind = definition["spec"]["names"]["kind"]
        schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
        for part in ("spec", "status"):
            pages[f"{kind.lower()}-{part}.md"] = _page(kind, part, schema["properties"][part])
    return pages


def _page(kind: str, part: str, schema: Schema) -> str:
    title = f"# {kind}: `{part}`\n\n"
    source = NOTE.format(source="operator/argosy/api")
    rows = (f"| `{name}` | {kind} | {meaning} |\n" for name, kind, meaning in _rows(schema, ""))
    return f"{title}{source}\n{_USE[part]}{_HEADER}{''.join(rows)}"


def _rows(schema: Schema, path: str) -> Iterator[tuple[str, str, str]]:
    """Yield each field below a schema with its path, type and description, an object's fields after it."""
    required = schema.get("required", ())
    for name, field in schema.get("properties", {}).items():
        meaning = " ".join(field.get("description", "").split()).replace("|", "\\|")
        yield path + name, _type(field), ("**Required.** " if name in required else "") + meaning
        yield from _rows(field, f"{path}{name}.")
        yield from _rows(field.get("items", {}), f"{path}{name}[].")
        yield from _rows(_values(field), f"{path}{name}.*.")


def _values(field: Schema) -> Schema:
    """Return the schema of a map's values, empty for anything else."""
    values = field.get("additionalProperties", {})
    return values if isinstance(values, dict) else {}


def _type(field: Schema) -> str:
    if "enum" in field:
        return ", ".join(f"`{value}`" for value in field["enum"])
    if field.get("x-kubernetes-int-or-string"):
        return "quantity"
    if field.get("type") == "array":
        return f"list of {_type(field['items'])}"
    if values := _values(field):
        return f"map of {_type(values)}"
    return str(field.get("type", "any"))
