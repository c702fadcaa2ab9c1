"""What servers counted of the requests that were mirrored to one version, as the candidate of a shadow."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from .durations import Durations, joined

MOST_EXAMPLES: Final = 5
"""Examples that are kept of each output, as servers keep them."""
_NOT_OWN: Final = ("REJECTED", "OTHER")
"""Reasons of failures that say nothing of the candidate, such as that it is unloaded."""
_OUT_OF_MEMORY: Final = "OUT_OF_MEMORY"
_STABLE_FAILED: Final = "STABLE_FAILED"


@dataclass(frozen=True, slots=True)
class ShadowExample:
    """An answer that differs much: the request's id, in what (`kind`), and how far (`size`)."""

    request_id: str
    kind: str
    size: float


@dataclass(frozen=True, slots=True)
class ShadowOutput:
    """One output over all compared requests: those in which it is `different`, `rows` whose largest elements were
    compared and the `agreeing` ones, the `largest` absolute difference of its numbers, and the worst examples first.
    """

    different: float = 0.0
    rows: float = 0.0
    agreeing: float = 0.0
    largest: float | None = None
    examples: tuple[ShadowExample, ...] = ()

    def __add__(self, other: "ShadowOutput") -> "ShadowOutput":
        """Return what both counted."""
        largest = [one for one in (self.largest, other.largest) if one is not None]
        return ShadowOutput(
            self.different + other.different,
            self.rows + other.rows,
            self.agreeing + other.agreeing,
            max(largest, default=None),
            worst((*self.examples, *other.examples)),
        )


@dataclass(frozen=True, slots=True)
class ShadowSignals:
    """Requests that were chosen for the shadow, by `outcomes`; copies that failed, by the reasons of `failures`; those
    that were skipped or not compared, by `obstacles`. Durations of the requests that both versions answered, at the
    `stable` one and at the `candidate`, without the time in queues. `calls`: copies whose models called other models.
    """

    outcomes: Mapping[str, float] = field(default_factory=dict)
    failures: Mapping[str, float] = field(default_factory=dict)
    obstacles: Mapping[str, float] = field(default_factory=dict)
    outputs: Mapping[str, ShadowOutput] = field(default_factory=dict)
    stable: Durations | None = None
    candidate: Durations | None = None
    calls: float = 0.0

    def __add__(self, other: "ShadowSignals") -> "ShadowSignals":
        """Return what both counted."""
        nothing = ShadowOutput()
        names = [*self.outputs, *(name for name in other.outputs if name not in self.outputs)]
        return ShadowSignals(
            _sums(self.outcomes, other.outcomes),
            _sums(self.failures, other.failures),
            _sums(self.obstacles, other.obstacles),
            {name: self.outputs.get(name, nothing) + other.outputs.get(name, nothing) for name in names},
            joined(self.stable, other.stable),
            joined(self.candidate, other.candidate),
            self.calls + other.calls,
        )

    @property
    def compared(self) -> float:
        """Requests whose answers were compared."""
        return self.outcomes.get("equal", 0.0) + self.different

    @property
    def different(self) -> float:
        """Requests whose answers differ by more than the tolerances."""
        return self.outcomes.get("different", 0.0)

    @property
    def failed(self) -> float:
        """Copies that the candidate failed, while the stable version answered."""
        return max(0.0, sum(count for reason, count in self.failures.items() if reason not in _NOT_OWN))

    @property
    def out_of_memory(self) -> float:
        """Of these, the ones for which memory was not sufficient."""
        return self.failures.get(_OUT_OF_MEMORY, 0.0)

    @property
    def answered(self) -> float:
        """Copies that the candidate answered."""
        uncompared = self.outcomes.get("uncompared", 0.0) - self.obstacles.get(_STABLE_FAILED, 0.0)
        return self.compared + max(0.0, uncompared)


def worst(examples: tuple[ShadowExample, ...]) -> tuple[ShadowExample, ...]:
    """Return the worst examples, of each request the worse one."""
    by_id: dict[str, ShadowExample] = {}
    for example in examples:
        former = by_id.get(example.request_id)
        if former is None or former.size < example.size:
            by_id[example.request_id] = example
    return tuple(sorted(by_id.values(), key=lambda one: (-one.size, one.request_id))[:MOST_EXAMPLES])


def _sums(one: Mapping[str, float], other: Mapping[str, float]) -> dict[str, float]:
    names = [*one, *(name for name in other if name not in one)]
    return {name: one.get(name, 0.0) + other.get(name, 0.0) for name in names}


def together(one: ShadowSignals | None, other: ShadowSignals | None) -> ShadowSignals | None:
    """Return both together; one of them if there is no other."""
    if one is None or other is None:
        return one or other
    return one + other
