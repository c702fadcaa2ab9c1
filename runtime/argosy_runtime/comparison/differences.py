"""What a comparison finds: how far an output of one version is from that of another."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from math import inf


class DifferenceKind(StrEnum):
    """In what two outputs differ.

    VALUE: numbers, by more than the tolerance. TOP1: the index of the largest element of a row. ELEMENTS: strings.
    TEXT: a generated text or its tokens. The others: the output itself, or the number of responses.
    """

    VALUE = "Value"
    TOP1 = "Top1"
    ELEMENTS = "Elements"
    TEXT = "Text"
    SHAPE = "Shape"
    DATATYPE = "Datatype"
    MISSING = "Missing"
    RESPONSES = "Responses"


@dataclass(frozen=True, slots=True)
class Difference:
    """How an output differs, and how far.

    `size`: of numbers the largest absolute difference (infinite where only one of them is finite), of rows and strings
    how many differ, of a text the share (0 to 1) behind the first difference, else infinite. `detail`: for the log.
    `position`: of a text how many characters or tokens come before the first difference.
    """

    kind: DifferenceKind
    size: float = inf
    detail: str = ""
    position: int | None = None

    @property
    def fails(self) -> bool:
        """Whether the answer counts as different. Rows are judged over all requests, by their share."""
        return self.kind is not DifferenceKind.TOP1


@dataclass(frozen=True, slots=True)
class OutputComparison:
    """One output of both versions. `largest`: the largest absolute difference of its numbers, None of other data.

    `rows` and `agreeing`: rows whose largest elements were compared, and those where they have the same index.
    """

    output: str
    difference: Difference | None = None
    largest: float | None = None
    rows: int = 0
    agreeing: int = 0

    def joined(self, other: "OutputComparison") -> "OutputComparison":
        """Return the comparison of two responses of a stream, with the larger difference."""
        differences = [one for one in (self.difference, other.difference) if one is not None]
        largest = [one for one in (self.largest, other.largest) if one is not None]
        return replace(
            self,
            difference=max(differences, key=lambda one: (one.fails, one.size), default=None),
            largest=max(largest, default=None),
            rows=self.rows + other.rows,
            agreeing=self.agreeing + other.agreeing,
        )


def are_equal(outputs: Iterable[OutputComparison]) -> bool:
    """Return whether no output differs by more than its tolerance."""
    return not any(output.difference is not None and output.difference.fails for output in outputs)
