"""A deterministic interleave: choices by weight whose counts are as close to the weights as whole numbers allow.

It is Tijdeman's rule for the chairman assignment problem. Of `n` weights, after any number of choices each index was
chosen within `1 - 1 / (2n - 2)` times of its exact share: of two weights, within half a choice. So in any run of
consecutive choices the count of an index is less than two from its share; of two weights, at most one.
"""

from collections.abc import Sequence


class Interleave:
    """Choices among indexes by whole weights.

    `credits`: by index, its share so far less its choices so far, in units of one choice divided by the sum of the
    weights. They may be taken over from another interleave of the same sum, which then goes on exactly.
    """

    def __init__(self, weights: Sequence[int], credits: Sequence[int] | None = None) -> None:  # noqa: A002  # the field's word
        self._weights = list(weights)
        self.credits = [0] * len(self._weights) if credits is None else list(credits)

    def next(self, among: Sequence[int]) -> int:
        """Return the next choice `among` indexes, at least one of which has a weight above 0."""
        weights, credits = self._weights, self.credits  # noqa: A001
        total = 0
        for index in among:
            total += weights[index]
            credits[index] += weights[index]
        slack = max(1, 2 * len(among) - 2)
        best, best_due, best_margin = -1, False, 0
        for index in among:
            weight = weights[index]
            if not weight:
                continue
            due = credits[index] * slack >= total
            # How much credit it can still gain before it would be too far behind its share.
            margin = total * (slack - 1) - credits[index] * slack
            if best < 0 or (due and not best_due):
                better = True
            else:
                better = due == best_due and margin * weights[best] < best_margin * weight
            if better:
                best, best_due, best_margin = index, due, margin
        credits[best] -= total
        return best
