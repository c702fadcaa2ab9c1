"""One output of two versions: names, datatypes and shapes, then the elements."""

from typing import Final

import numpy as np

from argosy_runtime.modelconfig.parameters.traffic import OutputTolerance
from argosy_runtime.tensors import Data, StringsError, Tensor, split_strings

from .differences import Difference, DifferenceKind, OutputComparison
from .numbers import agreeing_rows, compare_numbers

MOST_STRINGS: Final = 4096
"""Strings that are counted one by one: splitting more of them takes the interpreter for milliseconds."""


def compare_tensors(stable: Tensor, candidate: Tensor, tolerance: OutputTolerance) -> OutputComparison:
    """Compare an output of the stable version with the candidate's of the same name."""
    name = stable.name
    if stable.datatype != candidate.datatype:
        detail = f"{candidate.datatype} instead of {stable.datatype}"
        return OutputComparison(name, Difference(DifferenceKind.DATATYPE, detail=detail))
    if stable.shape != candidate.shape:
        detail = f"shape {list(candidate.shape)} instead of {list(stable.shape)}"
        return OutputComparison(name, Difference(DifferenceKind.SHAPE, detail=detail))
    if stable.datatype == "BYTES":
        return OutputComparison(name, _compare_strings(stable.data, candidate.data))
    if tolerance.top1_agreement is None:
        return _compare_numbers(stable, candidate, tolerance)
    rows = _compare_rows(stable, candidate)
    if not (tolerance.absolute or tolerance.relative):
        return rows
    return rows.joined(_compare_numbers(stable, candidate, tolerance))


def _compare_strings(stable: Data, candidate: Data) -> Difference | None:
    if _same_bytes(stable, candidate):
        return None
    try:
        pairs = zip(split_strings(stable, MOST_STRINGS), split_strings(candidate, MOST_STRINGS), strict=False)
        different = [index for index, (mine, theirs) in enumerate(pairs) if mine != theirs]
    except StringsError:
        return Difference(DifferenceKind.ELEMENTS, 1.0, "no list of strings")
    first = f"element {different[0]}" if different else f"an element behind the first {MOST_STRINGS}"
    return Difference(DifferenceKind.ELEMENTS, float(max(1, len(different))), f"{first} is another string")


def _compare_rows(stable: Tensor, candidate: Tensor) -> OutputComparison:
    rows, agreeing = agreeing_rows(stable.array, candidate.array)
    difference = None
    if agreeing < rows:
        detail = f"the largest element is another one in {rows - agreeing} of {rows} rows"
        difference = Difference(DifferenceKind.TOP1, float(rows - agreeing), detail)
    return OutputComparison(stable.name, difference, rows=rows, agreeing=agreeing)


def _compare_numbers(stable: Tensor, candidate: Tensor, tolerance: OutputTolerance) -> OutputComparison:
    if _are_same_bytes(stable, candidate):
        return OutputComparison(stable.name, largest=0.0)
    result = compare_numbers(stable.array, candidate.array, tolerance.absolute, tolerance.relative)
    difference = None
    if result.beyond:
        detail = f"{result.beyond} of {stable.array.size} elements differ, by {result.largest:g} at most"
        difference = Difference(DifferenceKind.VALUE, result.largest, detail)
    return OutputComparison(stable.name, difference, result.largest)


def _are_same_bytes(stable: Tensor, candidate: Tensor) -> bool:
    """Return whether both came encoded, and alike: the case of most outputs that are equal."""
    mine, theirs = stable.raw, candidate.raw
    return mine is not None and theirs is not None and _same_bytes(mine, theirs)


def _same_bytes(mine: Data, theirs: Data) -> bool:
    if len(mine) != len(theirs):
        return False
    return not len(mine) or np.array_equal(np.frombuffer(mine, np.uint8), np.frombuffer(theirs, np.uint8))
