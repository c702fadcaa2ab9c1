"""Takes secrets out of documents of plain JSON values: passwords in URLs, values of environment variables, tokens.

A value that was recognized as a secret in one place is replaced wherever it occurs, as in a rendered configuration or
in an error message. Names of Secrets are no secrets.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from argosy.api.values.meta import GROUP

REDACTED = "REDACTED"
_SHORTEST = 6
"""Characters from which on a secret is replaced wherever it occurs: a shorter one may be part of any word."""
_NAME = re.compile(
    r"(?:pass(?:word|wd|phrase)|secret|token|authorization|credentials?|(?:api|access|account|private|auth)[-_]?key)$",
    re.IGNORECASE,
)
_FLAG = re.compile(r"(--?[\w-]*(?:password|secret|token|authorization|credential|key))[= ](\S+)", re.IGNORECASE)
_USER = re.compile(r"[a-z][a-z0-9+.-]*://([^/\s@\"']+)@", re.IGNORECASE)
_SIGNATURE = re.compile(
    r"[?&](?:sig|signature|x-amz-signature|x-amz-credential|x-amz-security-token|x-goog-signature|x-goog-credential"
    r"|token|access_token|(?:api_?)?key|pass(?:word|wd)?|secret)=([^&\s\"']+)",
    re.IGNORECASE,
)
_BEARER = re.compile(r"\bbearer\s+([\w.~+/=-]{6,})", re.IGNORECASE)
_TOKEN_LENGTH = 16
"""Characters from which on the user of a URL without a password is a token."""
_TEXT_VALUES = ("string_value", "stringValue")
"""The field that has the value of a parameter of a model's configuration."""


@dataclass(frozen=True, slots=True)
class Redaction:
    """A document without its secrets, and the fields in which some were recognized."""

    document: Any
    fields: tuple[str, ...] = ()


def without_secrets(document: Any) -> Redaction:
    """Return a document of plain JSON values without secrets."""
    locations = dict(_secrets(document, ()))
    complete = {path for path, secrets in locations.items() if secrets is None}
    parts = {secret for secrets in locations.values() for secret in secrets or ()}
    values = parts | {text for text in (_at(document, path) for path in complete) if len(text) >= _SHORTEST}
    values.discard(REDACTED)
    pattern = re.compile("|".join(map(re.escape, sorted(values, key=len, reverse=True)))) if values else None
    return Redaction(_replaced(document, (), complete, pattern), tuple(".".join(map(str, path)) for path in locations))


_Path = tuple[str | int, ...]


def _secrets(value: Any, path: _Path) -> Iterator[tuple[_Path, tuple[str, ...] | None]]:
    """Yield the paths of texts with secrets: the secret parts, or None where all of the text is one."""
    if isinstance(value, Mapping):
        for name, item in value.items():
            inner = (*path, name)
            if isinstance(item, str) and item and _is_secret(path, value, name):
                yield inner, None
            elif _NAME.search(name) and (text := _parameter(item)):
                yield (*inner, text), None
            else:
                yield from _secrets(item, inner)
    elif isinstance(value, list | tuple) and not _are_numbers(value):
        for index, item in enumerate(value):
            yield from _secrets(item, (*path, index))
    elif isinstance(value, str) and (parts := _parts(value)):
        yield path, parts


def _is_secret(path: _Path, siblings: Mapping[str, Any], name: str) -> bool:
    """Return whether a field is a secret by its name, or by where it stands."""
    if path and path[-1] == "annotations":
        return not name.startswith(f"{GROUP}/")
    in_environment = len(path) > 1 and path[-2] == "env" and isinstance(path[-1], int)
    return (in_environment and name == "value" and "name" in siblings) or _NAME.search(name) is not None


def _parameter(item: Any) -> str | None:
    """Return the field that has the value of a parameter, if it is one with a text."""
    fields = item if isinstance(item, Mapping) else {}
    return next((name for name in _TEXT_VALUES if isinstance(fields.get(name), str) and fields[name]), None)


def _parts(text: str) -> tuple[str, ...]:
    """Return the secret parts of a text: passwords and signatures of URLs, values of flags."""
    users = (
        match[1].partition(":")[2] or match[1]
        for match in _USER.finditer(text)
        if ":" in match[1] or len(match[1]) >= _TOKEN_LENGTH
    )
    others = (
        *(match[1] for pattern in (_SIGNATURE, _BEARER) for match in pattern.finditer(text)),
        *(match[2] for match in _FLAG.finditer(text)),
    )
    return tuple(dict.fromkeys(part for part in (*users, *others) if part != REDACTED))


def _are_numbers(items: Sequence[Any]) -> bool:
    """Return whether a list has numbers alone, as the counts of a histogram, of which a bundle may have a million."""
    return set(map(type, items)) <= {int, float}


def _at(document: Any, path: _Path) -> str:
    for step in path:
        document = document[step]
    return str(document)


def _replaced(value: Any, path: _Path, complete: set[_Path], pattern: re.Pattern[str] | None) -> Any:
    if isinstance(value, Mapping):
        return {name: _replaced(item, (*path, name), complete, pattern) for name, item in value.items()}
    if isinstance(value, list | tuple) and not _are_numbers(value):
        return [_replaced(item, (*path, index), complete, pattern) for index, item in enumerate(value)]
    if path in complete:
        return REDACTED
    return pattern.sub(REDACTED, value) if pattern is not None and isinstance(value, str) else value
