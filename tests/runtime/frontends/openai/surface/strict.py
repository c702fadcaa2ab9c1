"""Answers as the official client's own types declare them, with no field more and none missing."""

from collections.abc import Iterator
from typing import Any

import pydantic

MORE = {("Response", "store")}
"""Fields that OpenAI's API has in its answers, and the types of its client lack."""


def strictly(kind: Any, raw: str | bytes) -> Any:
    """Return a JSON text as a type of the client. Fails for fields that are missing, too many or of another type."""
    value = pydantic.TypeAdapter(kind).validate_json(raw, strict=True)
    extras = [extra for extra in _extras(value) if extra not in MORE]
    assert not extras, extras
    return value


def _extras(value: Any) -> Iterator[tuple[str, str]]:
    """Yield the type and the name of each field that a type does not declare."""
    if isinstance(value, pydantic.BaseModel):
        for name in value.model_extra or ():
            yield type(value).__name__, name
        for name in type(value).model_fields:
            yield from _extras(getattr(value, name))
    elif isinstance(value, list):
        for item in value:
            yield from _extras(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from _extras(item)
