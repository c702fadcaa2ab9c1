"""Bodies of resources that are right, for tests to break."""

from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml

Body = dict[str, Any]

BODIES: dict[str, Body] = {
    body["kind"]: body
    for body in yaml.safe_load_all((Path(__file__).parent / "bodies.yaml").read_text(encoding="utf-8"))
}


@pytest.fixture
def body() -> Callable[..., Body]:
    """Return `body(kind, {"a.b.0.c": value, …})`: a valid body with values set; `...` as a value removes."""
    return changed


def changed(kind: str, changes: dict[str, Any] | None = None) -> Body:
    """Return a changed body of a kind, for modules that use no fixture."""
    result = deepcopy(BODIES[kind])
    for path, value in (changes or {}).items():
        _set(result["spec"], path.split("."), deepcopy(value) if value is not ... else ...)
    return result


def _set(at: Any, path: list[str], value: Any) -> None:
    *parents, last = [int(part) if part.isdigit() else part for part in path]
    for part in parents:
        at = at[part] if isinstance(at, list) else at.setdefault(part, {})
    if value is ...:
        del at[last]
    elif isinstance(at, list) and last == len(at):
        at.append(value)
    else:
        at[last] = value
