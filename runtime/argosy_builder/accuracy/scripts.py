"""A user's own measure: a Python file with `score(baseline, engine)`.

Both are the outputs by name with the samples as first axis, as numpy arrays. It may take a third argument: the data,
the inputs by name likewise, with `labels` where the data has them.
"""

import inspect
import runpy
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from argosy_agent.contract.builds import BuildFailure
from argosy_builder.contract import Array, BuildError
from argosy_builder.data import Samples
from argosy_builder.data.samples import LABELS

from .metrics import Answers

FIELD = "spec.engine.accuracy.script"


def score(script: Path, samples: Samples, baseline: Answers, engine: Answers) -> float:
    """Return the script's number. Raises BuildError where there is no such function, it fails, or gives no finite
    number.
    """
    function = _function(script)
    data = stacked(samples.rows) | ({LABELS: samples.labels} if samples.labels is not None else {})
    arguments: list[Any] = [stacked(baseline), stacked(engine), data]
    takes_data = len(inspect.signature(function).parameters) > 2
    try:
        result = float(function(*arguments[: 3 if takes_data else 2]))
    except Exception as error:
        raise _wrong(f"{script.name}: score raised {type(error).__name__}: {error}") from error
    if not np.isfinite(result):
        raise _wrong(f"{script.name}: score gave {result}, which is no finite number")
    return result


def stacked(rows: Sequence[Mapping[str, Array]]) -> dict[str, Array]:
    """Return the tensors by name with the samples as first axis; of shapes that differ, an array of arrays."""
    arrays: dict[str, Array] = {}
    for name in rows[0] if rows else ():
        values = [row[name] for row in rows]
        if len({value.shape for value in values}) == 1:
            arrays[name] = np.stack(values)
        else:
            arrays[name] = np.empty(len(values), object)
            arrays[name][:] = values
    return arrays


def _function(script: Path) -> Any:
    try:
        function = runpy.run_path(str(script)).get("score")
    except Exception as error:
        raise _wrong(f"{script.name} cannot be run: {type(error).__name__}: {error}") from error
    if not callable(function):
        raise _wrong(f"{script.name} has no function score(baseline, engine)")
    return function


def _wrong(message: str) -> BuildError:
    return BuildError(BuildFailure.ACCURACY_DATA_INVALID, f"{FIELD}: {message}")
