"""The split of a model's requests that name no version: which version answers, and how many each was sent.

A request of a sequence goes where the sequence began, as long as that version answers. Other requests with a sequence
id or one of the sticky keys are divided by a hash of it, all others by a deterministic interleave.
"""

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Final

from argosy_runtime.fifo_cache import FifoCache
from argosy_runtime.messages import InferRequest
from argosy_runtime.modelconfig.parameters.traffic import MILLIONTHS, VersionTraffic
from argosy_runtime.scheduling.interleave import Interleave

from .keys import key_of, version_of

_MOST_SEQUENCES: Final = 1 << 16
NONE: Final = 0
"""The number of no version."""


Answers = Callable[[int], bool]
"""Returns whether a version answers."""


class Chosen(StrEnum):
    """What decided the version of a request."""

    WEIGHT = "weight"
    KEY = "key"
    SEQUENCE = "sequence"


class TrafficSplit:
    """The split of one model; `follow` changes it. `routed`: requests by version, by what decided."""

    def __init__(self, model: str, traffic: VersionTraffic) -> None:
        self._model = model
        self._sequences = FifoCache[int | str, int](_MOST_SEQUENCES)
        self.routed: dict[Chosen, dict[int, int]] = {chosen: {} for chosen in Chosen}
        self._set(traffic, {})

    def follow(self, traffic: VersionTraffic) -> None:
        """Split the next requests by other weights; counts, open sequences and shares that are owed go on."""
        interleave = self._interleave
        self._set(traffic, {version: interleave.credits[i] for i, version in enumerate(self._weighted)})

    def _set(self, traffic: VersionTraffic, owed: Mapping[int, int]) -> None:
        self.traffic = traffic
        self.order = traffic.order
        self._weights = sorted(traffic.weights.items())
        self._weighted = [version for version, weight in self._weights if weight]
        carried = {version: owed.get(version, 0) for version in self._weighted}
        # What is owed to versions without a weight any more is the stable one's, so that the sum stays 0.
        carried[traffic.stable] -= sum(carried.values())
        self._interleave = Interleave(
            [traffic.weights[version] for version in self._weighted], [carried[version] for version in self._weighted]
        )
        self._indexes = range(len(self._weighted))
        for counts in self.routed.values():
            for version in traffic.weights:
                counts.setdefault(version, 0)

    def choose(self, request: InferRequest, takes: Answers, answers: Answers) -> int:
        """Return the version that answers a request, and count it; NONE where no listed version `answers`.

        `takes`: it takes the request now; `answers`: it will, maybe after a restart. The share of a version that does
        not take requests goes to the others, the highest weight first; to those without a weight if no other answers.
        Requests of the stable version wait for its restart: no candidate gets more than its share for that.
        """
        if request.sequence_id:
            chosen, version = Chosen.SEQUENCE, self._of_sequence(request, takes, answers)
        else:
            key = key_of(request, self.traffic.sticky) if self.traffic.sticky else ""
            if key:
                chosen, version = Chosen.KEY, version_of(key, self._model, self._weights)
            else:
                chosen, version = Chosen.WEIGHT, self._weighted[self._interleave.next(self._indexes)]
            if not takes(version):
                version = self._instead(takes, answers)
        if version:
            counts = self.routed[chosen]
            counts[version] = counts.get(version, 0) + 1
        return version

    def _instead(self, takes: Answers, answers: Answers) -> int:
        """Return the stable version if it will answer, else the version of the highest weight that takes requests, else
        one that will answer them, else NONE. Those without a weight are the last: they are not proven, or taken back.
        """
        if answers(self.traffic.stable):
            return self.traffic.stable
        weights = self.traffic.weights
        weighted = [version for version in self.order if weights[version]]
        unweighted = [version for version in self.order if not weights[version]]
        for versions in (weighted, unweighted):
            for suits in (takes, answers):
                for version in versions:
                    if suits(version):
                        return version
        return NONE

    def _of_sequence(self, request: InferRequest, takes: Answers, answers: Answers) -> int:
        """Return the version of a sequence: that of its start, unless that answers no more."""
        sequence = request.sequence_id
        version = NONE if request.sequence_start else self._sequences.get(sequence) or NONE
        if not version or not answers(version):
            version = version_of(str(sequence), self._model, self._weights)
            if not takes(version):
                version = self._instead(takes, answers)
            if request.sequence_start or sequence in self._sequences:
                self._sequences.put(sequence, version)
        if request.sequence_end:
            self._sequences.remove(sequence)
        return version

    def weight(self, version: int) -> int:
        """Return the weight of a version, in millionths."""
        return self.traffic.weights.get(version, 0)


__all__ = ["NONE", "MILLIONTHS", "Chosen", "TrafficSplit"]
