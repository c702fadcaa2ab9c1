"""How long models take, from a file: what `argosy simulate` cannot know by itself."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from argosy.api.yamltext import YamlTextError, read_documents
from argosy.simulation.servers.engine import EngineCurve
from argosy.simulation.service import ServiceCurve, interpolated

Curve = ServiceCurve | EngineCurve
_FORM = (
    "write seconds: {1: 0.012, 8: 0.05} for executions by their rows, or stepSeconds: {1: 0.02, 16: 0.03} for an "
    "engine's steps by its sequences"
)
_KNOWN = frozenset({"seconds", "slowdown", "variation", "stepSeconds", "promptTokenSeconds"})


class CurvesError(ValueError):
    """The file holds no usable curves; the message names the field."""


def read_curves(path: Path) -> dict[str, Curve]:
    """Service curves by the resource's name, of a YAML or JSON file. Raises CurvesError."""
    try:
        documents = list(read_documents(path.read_text()))
    except (OSError, UnicodeDecodeError, YamlTextError) as error:
        raise CurvesError(f"{path}: cannot be read: {error}") from error
    value = documents[0].value if documents else None
    if len(documents) > 1 or not isinstance(value, Mapping) or not value:
        raise CurvesError(f"{path}: must be one mapping of models; under each, {_FORM}")
    return {str(name): _curve(found, f"{path}: {name}") for name, found in value.items()}


def _curve(found: Any, where: str) -> Curve:
    if not isinstance(found, Mapping) or ("seconds" in found) == ("stepSeconds" in found):
        raise CurvesError(f"{where}: {_FORM}")
    unknown = sorted(str(each) for each in found.keys() - _KNOWN)
    if unknown:
        raise CurvesError(f"{where}: {unknown[0]} is not known; there are {', '.join(sorted(_KNOWN))}")
    try:
        if "seconds" in found:
            slowdown = tuple(map(_number, found.get("slowdown", (1.0,))))
            return interpolated(_points(found["seconds"]), slowdown, _number(found.get("variation", 0.05)))
        steps = interpolated(_points(found["stepSeconds"]), (1.0,), 0.0).seconds
        return EngineCurve(steps, _number(found.get("promptTokenSeconds", 0.0)))
    except (TypeError, ValueError) as error:
        raise CurvesError(f"{where}: {error}") from None


def _points(found: Any) -> list[tuple[int, float]]:
    if not isinstance(found, Mapping):
        raise ValueError(_FORM)
    return [(int(_number(rows)), _number(seconds)) for rows, seconds in found.items()]


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError(f"{value!r} is no number")
    return float(value)
