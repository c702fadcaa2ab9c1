"""All responses of two versions to one request, in their order."""

from collections.abc import Mapping, Sequence
from itertools import zip_longest

from argosy_runtime.modelconfig.parameters.traffic import OutputTolerance
from argosy_runtime.tensors import Tensor

from .differences import Difference, DifferenceKind, OutputComparison
from .tensors import compare_tensors

Outputs = tuple[Tensor, ...]
"""The outputs of one response."""


def compare_responses(
    stable: Sequence[Outputs], candidate: Sequence[Outputs], tolerances: Mapping[str, OutputTolerance]
) -> list[OutputComparison]:
    """Compare the responses of both versions one by one. Outputs that only the candidate has are left out.

    Where one of them has more responses, the outputs of the first surplus one differ in that.
    """
    joined: dict[str, OutputComparison] = {}
    for mine, theirs in zip_longest(stable, candidate):
        if mine is None or theirs is None:
            detail = f"{len(candidate)} responses instead of {len(stable)}"
            surplus = Difference(DifferenceKind.RESPONSES, detail=detail)
            _add(joined, [OutputComparison(tensor.name, surplus) for tensor in theirs or mine or ()])
            break
        _add(joined, _compare(mine, theirs, tolerances))
    return list(joined.values())


def _compare(stable: Outputs, candidate: Outputs, tolerances: Mapping[str, OutputTolerance]) -> list[OutputComparison]:
    by_name = {tensor.name: tensor for tensor in candidate}
    return [
        compare_tensors(tensor, by_name[tensor.name], tolerances.get(tensor.name) or OutputTolerance(tensor.name))
        if tensor.name in by_name
        else OutputComparison(tensor.name, Difference(DifferenceKind.MISSING, detail="the output is missing"))
        for tensor in stable
    ]


def _add(joined: dict[str, OutputComparison], comparisons: Sequence[OutputComparison]) -> None:
    for comparison in comparisons:
        before = joined.get(comparison.output)
        joined[comparison.output] = comparison if before is None else before.joined(comparison)
