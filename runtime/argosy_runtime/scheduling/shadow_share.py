"""The requests that are copied to a shadow: a share of them, evenly spread, and sequences as a whole."""

from typing import Final

from argosy_runtime.fifo_cache import FifoCache
from argosy_runtime.messages import InferRequest
from argosy_runtime.modelconfig.parameters.traffic import MILLIONTHS

MOST_SEQUENCES: Final = 1024
"""Sequences that are copied at a time. The oldest is given up for one more: its client may never have ended it."""


class ShadowShare:
    """Chooses requests by a credit, without dice: of a share of one quarter every fourth. `share`: millionths.

    A sequence is chosen with its first request, and then all of its requests are. Those that begin before are not.
    """

    def __init__(self, share: int) -> None:
        self._share = share
        self._credit = 0
        self._sequences = FifoCache[int | str, None](MOST_SEQUENCES)

    def chooses(self, request: InferRequest) -> bool:
        """Return whether a request is chosen. To be called once for each."""
        sequence = request.sequence_id
        if not sequence:
            return self._next()
        if request.sequence_start:
            self._sequences.remove(sequence)
            if self._next():
                self._sequences.put(sequence, None)
        chosen = sequence in self._sequences
        if request.sequence_end:
            self._sequences.remove(sequence)
        return chosen

    def give_up(self, request: InferRequest) -> None:
        """Choose no further request of this one's sequence, because this one was not copied."""
        if request.sequence_id:
            self._sequences.remove(request.sequence_id)

    def _next(self) -> bool:
        self._credit += self._share
        if self._credit < MILLIONTHS:
            return False
        self._credit -= MILLIONTHS
        return True
