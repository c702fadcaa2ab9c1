"""Requests divided by weights, in a fixed order: of weights 3 and 1, every fourth request goes to the second."""

from collections.abc import Sequence

from argosy_common.regimes import VariantState

_ORDER = (VariantState.READY, VariantState.WAKING, VariantState.ASLEEP)


class Weights:
    """Smooth weighted round robin, as nginx has it: each choice adds the weights to the variants' credits, and the one
    with the highest credit pays the sum.
    """

    def __init__(self, weights: Sequence[int]) -> None:
        self._weights = tuple(weights)
        self._credits = [0] * len(self._weights)

    def choose(self, states: Sequence[VariantState], tried: Sequence[int] = ()) -> int | None:
        """Return the next variant among those that can answer, else among those that can be woken. None without one."""
        for state in _ORDER:
            candidates = [
                index
                for index, weight in enumerate(self._weights)
                if weight and states[index] is state and index not in tried
            ]
            if candidates:
                return self._next(candidates)
        return None

    def _next(self, candidates: Sequence[int]) -> int:
        for index in candidates:
            self._credits[index] += self._weights[index]
        chosen = max(candidates, key=lambda index: (self._credits[index], -index))
        self._credits[chosen] -= sum(self._weights[index] for index in candidates)
        return chosen
