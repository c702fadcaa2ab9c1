"""Service curves from a file: how long models take, which `argosy simulate` cannot know by itself."""

from collections.abc import Mapping, Sequence
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
_ROWS_RULE = f"its keys must be whole numbers from 1 to {_MAX_ROWS}"
_FIELDS = {"seconds": ("seconds", "slowdown", "variation"), "stepSeconds": ("stepSeconds", "promptTokenSeconds")}
"""The fields of a curve by the one that says of which kind it is."""


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
    kind = "seconds" if "seconds" in fields else "stepSeconds"
    unknown = sorted(map(str, fields.keys() - set(_FIELDS[kind])))
    if unknown:
        raise CurvesError(f"{where}: unknown field {unknown[0]}; with {kind} there are {', '.join(_FIELDS[kind])}")
    try:
        points = _points(fields[kind], kind)
        if kind == "seconds":
            return interpolated(points, _slowdown(fields.get("slowdown", (1.0,))), _variation(fields))
        steps = interpolated(points, (1.0,), 0.0).seconds
        token = _number(fields.get("promptTokenSeconds", 0.0), "promptTokenSeconds", "seconds, such as 0.0001")
        return EngineCurve(steps, _checked(token, token >= 0, "promptTokenSeconds", "must be 0 or more"))
    except ValueError as error:
        raise CurvesError(f"{where}: {error}") from None


def _points(value: Any, field: str) -> list[tuple[int, float]]:
    if not isinstance(value, Mapping) or not value:
        raise ValueError(_SYNTAX)
    points = []
    for count, seconds in value.items():
        rows, entry = _number(count, field, "rows or sequences, such as 8"), f"{field}[{count}]"
        _checked(rows, rows.is_integer() and 1 <= rows <= _MAX_ROWS, field, _ROWS_RULE)
        second = _number(seconds, entry, "seconds, such as 0.038")
        points.append((int(rows), _checked(second, second > 0, entry, "must be more than 0 seconds")))
    return points


def _slowdown(value: Any) -> tuple[float, ...]:
    if not isinstance(value, Sequence) or isinstance(value, str) or not value:
        raise ValueError(f"slowdown: expected a list of numbers, such as [1, 1.6]; found {value!r}")
    return tuple(_factor(item, f"slowdown[{index}]") for index, item in enumerate(value))


def _factor(value: Any, field: str) -> float:
    factor = _number(value, field, "times longer, such as 1.6")
    return _checked(factor, factor >= 1, field, "must be 1 or more")


def _variation(fields: Mapping[Any, Any]) -> float:
    share = _number(fields.get("variation", 0.05), "variation", "deviations over the mean, such as 0.05")
    return _checked(share, 0 <= share < 1, "variation", "must be from 0 to below 1")


def _checked(value: float, fits: bool, field: str, rule: str) -> float:
    if not isfinite(value):
        rule = "must be a finite number"
    elif fits:
        return value
    raise ValueError(f"{field}: {rule}; found {value:.12g}")


def _number(value: Any, field: str, meaning: str) -> float:
    """Return the number of a field, also of a text such as 4e-2, which YAML does not read as one. Raises ValueError."""
    try:
        if not isinstance(value, bool):
            return float(value)
    except (TypeError, ValueError):
        pass
    raise ValueError(f"{field}: expected a number of {meaning}, without a unit; found {value!r}")
