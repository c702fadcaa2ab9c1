"""How fast the variants of a routed model answer, by requests in flight: measured from their requests."""

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from argosy_runtime.messages import InferResponse
from argosy_runtime.scheduling.variants.crossovers import ObservedCrossover, ObservedCrossovers
from argosy_runtime.tensors.strings import Data

from .slot import VariantSlot

_TOKENS: Final = "num_output_tokens"
_COUNT_BYTES: Final = 4


class MeasurementStart(NamedTuple):
    """When a request came to a variant, and how busy that and the other ones had been until then."""

    variant: int
    at: int
    busy_ns: int
    others_ns: int


class VariantSpeeds:
    """The measurements of one routed model. `limits`: its crossovers; None if they are unknown, or it has weights."""

    def __init__(self, slots: Sequence[VariantSlot], limits: Sequence[int] | None) -> None:
        self._slots = slots
        self._limits = tuple(limits or ())
        self._crossovers = ObservedCrossovers(len(slots))
        self._counts_tokens = False

    def continue_from(self, former: "VariantSpeeds") -> None:
        """Go on with the measurements of the same variants, as after a change of their crossovers."""
        if [slot.name for slot in former._slots] == [slot.name for slot in self._slots]:
            self._crossovers, self._counts_tokens = former._crossovers, former._counts_tokens

    def start(self, variant: int, now: int) -> MeasurementStart:
        """Return what a request is measured from, which its variant has in flight from now on."""
        return MeasurementStart(variant, now, self._slots[variant].busy_at(now), self._others_ns(variant, now))

    def measure(self, start: MeasurementStart, size: int, tokens: int, now: int) -> None:
        """Measure an answered request by its tokens, or by its rows where no request of the model has tokens.

        Requests during which another variant was busy do not count: they may share what they run on.
        """
        if tokens and not self._counts_tokens:
            self._crossovers, self._counts_tokens = ObservedCrossovers(len(self._slots)), True
        duration, work = now - start.at, tokens if self._counts_tokens else max(size, 1)
        if duration <= 0 or self._others_ns(start.variant, now) != start.others_ns:
            return
        in_flight = (self._slots[start.variant].busy_at(now) - start.busy_ns) / duration
        self._crossovers.add(start.variant, in_flight, duration, work, now)

    def observed(self, variant: int, now: int) -> ObservedCrossover | None:
        """Return the crossover of a variant and the next one; None if too few requests can be compared."""
        limit = self._limits[variant] if variant < len(self._limits) else None
        return self._crossovers.observed(variant, limit, now)

    def _others_ns(self, variant: int, now: int) -> int:
        return sum(slot.busy_at(now) for index, slot in enumerate(self._slots) if index != variant)


def new_tokens(response: InferResponse) -> int:
    """Return the new tokens of a response of a language model; 0 if it does not count them."""
    if response.error is not None:
        return 0
    if response.template is None:
        return next((_sum(output.data) for output in response.outputs if output.name == _TOKENS), 0)
    for index, spec in enumerate(response.template.outputs):
        if spec.name == _TOKENS and response.raw is not None:
            return _sum(response.raw[index])
    return 0


def _sum(data: Data) -> int:
    if len(data) == _COUNT_BYTES:
        return int.from_bytes(data, "little")
    return int(np.frombuffer(data, np.uint32).sum()) if len(data) % _COUNT_BYTES == 0 else 0
