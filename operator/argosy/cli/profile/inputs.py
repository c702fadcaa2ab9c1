"""The command's arguments as a model and the steps of its sweep, with every error at once."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from argosy.api import Resource
from argosy.api.values.quantity import parse_duration
from argosy.local.manifests.reading import read_manifests
from argosy.local.profiling.manifest import BATCHES, Profiled, find, shape_errors
from argosy.local.profiling.sweep import Steps

_MOST_ROWS: Final = 65536
"""The largest number of rows: more is a mistake in writing."""
_MOST_INSTANCES: Final = 256
"""The most that spec.instances may have."""


@dataclass(frozen=True, slots=True)
class Inputs:
    """The arguments as they were written."""

    model: str
    filenames: Sequence[Path]
    batches: str | None
    instances: str
    latency_budget: str | None
    shapes: Sequence[str]
    seconds: float


def read_inputs(
    texts: Inputs, resources: Sequence[Resource] | None = None
) -> tuple[Profiled | None, Steps, float | None, list[str]]:
    """Return the model, the steps, the budget in seconds, and all errors. There is no model where it has one.

    `resources`: the declared ones, None where they are in files.
    """
    problems: list[str] = []
    shapes = _shapes(texts.shapes, problems)
    budget = _budget(texts.latency_budget, problems)
    profiled = _profiled(texts, resources, problems)
    instances = _numbers("--instances", texts.instances, _MOST_INSTANCES, problems)
    batches = _batches(texts.batches, profiled, problems)
    if profiled is not None:
        problems += shape_errors(profiled.model, list(shapes))
    return profiled, Steps(batches, instances, texts.seconds, shapes), budget, problems


def _profiled(texts: Inputs, resources: Sequence[Resource] | None, problems: list[str]) -> Profiled | None:
    if resources is None:
        if not texts.filenames:
            return None  # said of the options
        manifests = read_manifests(*texts.filenames)
        if manifests.problems:
            problems += map(str, manifests.problems)
            return None
        resources = manifests.resources
    result = find(texts.model, resources)
    if isinstance(result, str):
        problems.append(result)
        return None
    return result


def _batches(text: str | None, profiled: Profiled | None, problems: list[str]) -> list[int]:
    """Return the sizes: those of the option, or powers of two up to the model's largest batch, and that."""
    declared = profiled.model.spec.max_batch_size if profiled is not None else None
    if text is not None:
        sizes = _numbers("--batches", text, _MOST_ROWS, problems)
        if declared == 0 and sizes != [1]:
            problems.append("--batches: the model takes no batches (maxBatchSize: 0); leave the option out")
        return sizes
    most = 1 if declared == 0 else declared or BATCHES
    sizes = [2**power for power in range(most.bit_length()) if 2**power < most]
    return [*sizes, most]


def _numbers(option: str, text: str, most: int, problems: list[str]) -> list[int]:
    try:
        numbers = sorted({int(part) for part in text.split(",")})
    except ValueError:
        numbers = []
    if not numbers or not 1 <= numbers[0] <= numbers[-1] <= most:
        problems.append(f"{option}: {text!r} is no list of numbers from 1 to {most}, such as 1,2,4")
        return [1]
    return numbers


def _budget(text: str | None, problems: list[str]) -> float | None:
    if text is None:
        return None
    try:
        milliseconds = parse_duration(text)
    except ValueError as error:
        problems.append(f"--latency-budget: {error}")
        return None
    if milliseconds <= 0:
        problems.append("--latency-budget: must be more than 0s, such as 50ms")
    return milliseconds / 1000


def _shapes(texts: Sequence[str], problems: list[str]) -> dict[str, tuple[int, ...]]:
    shapes: dict[str, tuple[int, ...]] = {}
    for text in texts:
        name, separator, sizes = text.partition("=")
        try:
            shape = tuple(int(size) for size in sizes.split(","))
        except ValueError:
            shape = ()
        if not (name and separator and shape) or any(not 0 < size <= 2**31 for size in shape):
            problems.append(f"--shape: {text!r} is no INPUT=SIZES, such as ids=128 or image=3,224,224")
        else:
            shapes[name] = shape
    return shapes
