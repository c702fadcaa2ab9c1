"""The counters of the copies that one version was sent, and how its answers compare with the stable version's."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from argosy_runtime.comparison.differences import Difference, OutputComparison, are_equal
from argosy_runtime.errors import FailureReason
from argosy_runtime.histograms import DurationHistogram, TokenHistogram

MOST_EXAMPLES: Final = 5
"""Examples of each output: each is a series of its own."""
MOST_OUTPUTS: Final = 64
"""Outputs with counters of their own; differences of further ones count in the requests alone."""
MOST_ID: Final = 128
"""Characters of a request's id in a label."""
MODEL_ERROR: Final = "ERROR"
"""The reason of a failure where the candidate answered with an error of its own, and the stable version did not."""
FAILURES: Final = (*[reason.value for reason in FailureReason if reason is not FailureReason.CANCELED], MODEL_ERROR)


class ShadowOutcome(StrEnum):
    """What became of a request that was chosen to be copied.

    `UNCOMPARED`: both versions were asked, and the answers not compared. `SKIPPED`: it was not copied. `CANCELED`: the
    copy was withdrawn, with its request or at the end of the shadow.
    """

    EQUAL = "equal"
    DIFFERENT = "different"
    FAILED = "failed"
    UNCOMPARED = "uncompared"
    SKIPPED = "skipped"
    CANCELED = "canceled"


class Obstacle(StrEnum):
    """Why a chosen request was skipped, or copied and not compared.

    IN_FLIGHT: as many copies as may be are under way. BUSY: requests waited for an instance all the time. NOT_READY:
    the candidate cannot answer. MEMORY: too much is held already. SAMPLED: its answer is drawn at random.
    STABLE_FAILED: the stable version failed. ERROR: the server could not compare the answers, as its log says.
    """

    IN_FLIGHT = "IN_FLIGHT"
    BUSY = "BUSY"
    NOT_READY = "NOT_READY"
    MEMORY = "MEMORY"
    SAMPLED = "SAMPLED"
    STABLE_FAILED = "STABLE_FAILED"
    ERROR = "ERROR"


@dataclass(frozen=True, slots=True)
class Example:
    """One of the answers that differ most."""

    request_id: str
    difference: Difference


@dataclass(slots=True)
class OutputStatistics:
    """One output over all compared requests. `rows` and `agreeing` as in `OutputComparison`; the worst example first.

    `different`: requests in which it differs by more than its tolerance.
    """

    different: int = 0
    largest: float | None = None
    rows: int = 0
    agreeing: int = 0
    examples: list[Example] = field(default_factory=list)

    def add(self, comparison: OutputComparison, request_id: str) -> bool:
        """Count a comparison. Return whether it has become an example."""
        self.rows += comparison.rows
        self.agreeing += comparison.agreeing
        if comparison.largest is not None:
            self.largest = max(self.largest or 0.0, comparison.largest)
        difference = comparison.difference
        if difference is None:
            return False
        self.different += difference.fails
        return self._add_example(Example(request_id[:MOST_ID], difference))

    def _add_example(self, example: Example) -> bool:
        """Keep an example if it is one of the worst. A request's id has one: the worse of two."""
        size = example.difference.size
        former = next((one for one in self.examples if one.request_id == example.request_id), None)
        if former is None and len(self.examples) == MOST_EXAMPLES:
            former = self.examples[-1]
        if former is not None and former.difference.size >= size:
            return False
        others = [one for one in self.examples if one is not former]
        self.examples = sorted([*others, example], key=lambda one: -one.difference.size)
        return True


class ShadowStatistics:
    """The counters of one version as the candidate of a shadow.

    `stable` and `candidate`: durations of both sides of the same requests, in which both succeeded; `stable_first` and
    `candidate_first`: to their first responses. `positions`: of generated answers that differ, the characters or tokens
    before the first difference. `calls`: copies whose models called others. `declared`: the outputs of its
    configuration, which are counted from the start.
    """

    def __init__(self, declared: Iterable[str] = ()) -> None:
        self.outcomes = dict.fromkeys(ShadowOutcome, 0)
        self.failures = dict.fromkeys(FAILURES, 0)
        self.obstacles = dict.fromkeys(Obstacle, 0)
        self.stable = DurationHistogram()
        self.candidate = DurationHistogram()
        self.stable_first = DurationHistogram()
        self.candidate_first = DurationHistogram()
        self.positions = TokenHistogram()
        self.calls = 0
        self.outputs: dict[str, OutputStatistics] = {name: OutputStatistics() for name in [*declared][:MOST_OUTPUTS]}

    def skipped(self, obstacle: Obstacle) -> None:
        """Count a chosen request that is not copied."""
        self.outcomes[ShadowOutcome.SKIPPED] += 1
        self.obstacles[obstacle] += 1

    def uncompared(self, obstacle: Obstacle) -> None:
        """Count a request that both versions were sent, and whose answers are not compared."""
        self.outcomes[ShadowOutcome.UNCOMPARED] += 1
        self.obstacles[obstacle] += 1

    def canceled(self) -> None:
        """Count a copy that was withdrawn."""
        self.outcomes[ShadowOutcome.CANCELED] += 1

    def failed(self, reason: FailureReason | None) -> int:
        """Count a copy that failed while the stable version answered; None: the model itself answered an error.

        Return how many have failed.
        """
        self.outcomes[ShadowOutcome.FAILED] += 1
        label = MODEL_ERROR if reason is None else reason.value
        self.failures[label if label in self.failures else FailureReason.OTHER.value] += 1
        return self.outcomes[ShadowOutcome.FAILED]

    def compared(self, outputs: list[OutputComparison], request_id: str) -> list[OutputComparison]:
        """Count two answers that were compared. Return the outputs of which they have become examples."""
        self.outcomes[ShadowOutcome.EQUAL if are_equal(outputs) else ShadowOutcome.DIFFERENT] += 1
        examples = []
        for output in outputs:
            statistics = self.outputs.get(output.output)
            if statistics is None and len(self.outputs) < MOST_OUTPUTS:
                statistics = self.outputs[output.output] = OutputStatistics()
            if statistics is not None and statistics.add(output, request_id):
                examples.append(output)
        differences = [output.difference for output in outputs if output.difference is not None]
        positions = [difference.position for difference in differences if difference.position is not None]
        if positions:
            self.positions.add(min(positions))
        return examples
