"""Service curves from a file: how long models take, which `argosy simulate` cannot know by itself."""

from collections.abc import Mapping
from math import isfinite
from pathlib import Path
from typing import Any

from argosy.api.yamltext import YamlTextError, read_documents
from argosy.local.manifests.reading import unreadable
from argosy.simulation.servers.engine import EngineCurve
from argosy.simulation.service import ServiceCurve, interpolated

Curve = ServiceCurve | EngineCurve
_SYNTAX = (
    "write seconds: {1: 0.012, 8: 0.05} for executions by their rows, or stepSeconds: {1: 0.02, 16: 0.03} for an "
    "engine's steps by its sequences"
)
_MAX_ROWS = 65536
_FIELDS = frozenset({"seconds", "slowdown", "variation", "stepSeconds", "promptTokenSeconds"})


class CurvesError(ValueError):
    """The file has no valid curves; the message names the field."""


def read_curves(path: Path) -> dict[str, Curve]:
    """Return the service curves of a YAML or JSON file by the resource's name. Raises CurvesError."""
    try:
        documents = list(read_documents(path.read_text()))
    except (OSError, UnicodeDecodeError) as error:
        raise CurvesError(f"{path}: {unreadable(error)}") from error
    except YamlTextError as error:
        raise CurvesError(f"{path}: {error}") from error
    value = documents[0].value if documents else None
    if len(documents) > 1 or not isinstance(value, Mapping) or not value:
        raise CurvesError(f"{path}: must be one mapping of models; under each, {_SYNTAX}")
    return {str(name): _curve(fields, f"{path}: {name}") for name, fields in value.items()}


def _curve(fields: Any, where: str) -> Curve:
    if not isinstance(fields, Mapping) or ("seconds" in fields) == ("stepSeconds" in fields):
        raise CurvesError(f"{where}: {_SYNTAX}")
    unknown = sorted(map(str, fields.keys() - _FIELDS))
    if unknown:
        raise CurvesError(f"{where}: unknown field {unknown[0]}; there are {', '.join(sorted(_FIELDS))}")
    try:
        if "seconds" in fields:
            slowdown = tuple(map(_number, fields.get("slowdown", (1.0,))))
            return interpolated(_points(fields["seconds"]), slowdown, _number(fields.get("variation", 0.05)))
        steps = interpolated(_points(fields["stepSeconds"]), (1.0,), 0.0).seconds
        return EngineCurve(steps, _number(fields.get("promptTokenSeconds", 0.0)))
    except (TypeError, ValueError) as error:
        raise CurvesError(f"{where}: {error}") from None


def _points(value: Any) -> list[tuple[int, float]]:
    if not isinstance(value, Mapping):
        raise ValueError(_SYNTAX)
    points = [(int(_number(rows)), _number(seconds)) for rows, seconds in value.items()]
    most = max((rows for rows, _ in points), default=0)
    if most > _MAX_ROWS:
        raise ValueError(f"a curve goes up to {_MAX_ROWS} rows; found {most}")
    return points


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError(f"{value!r} is no number")
    number = float(value)
    if not isfinite(number):
        raise ValueError(f"{value!r} is no number")
    return number
