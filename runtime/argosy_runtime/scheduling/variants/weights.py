"""Requests divided by weights, in a fixed order: of weights 3 and 1, every fourth request goes to the second."""

from collections.abc import Sequence

from argosy_common.regimes import VariantState
from argosy_runtime.scheduling.interleave import Interleave

_ORDER = (VariantState.READY, VariantState.WAKING, VariantState.ASLEEP)


class Weights:
    """The choices among variants by weight: an interleave of those that can answer."""

    def __init__(self, weights: Sequence[int]) -> None:
        self._weights = tuple(weights)
        self._interleave = Interleave(self._weights)

    def choose(self, states: Sequence[VariantState], tried: Sequence[int] = ()) -> int | None:
        """Return the next variant among those that can answer, else among those that can be woken. None without one."""
        for state in _ORDER:
            candidates = [
                index
                for index, weight in enumerate(self._weights)
                if weight and states[index] is state and index not in tried
            ]
            if candidates:
                return self._interleave.next(candidates)
        return None
