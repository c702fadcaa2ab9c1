"""Loads on both servers, in alternating rounds; what came of them as cells."""

import statistics
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from tests.peers.perf_analyzer import LoadError
from tests.peers.server import Server

from .load import Load
from .measuring import Measured, measure

Note = Callable[[str], None]
Round = tuple[Measured, Measured]
"""Argosy's measurement and Triton's, one right after the other."""


@dataclass(frozen=True)
class Cell:
    """One load, and its rounds: none where a server failed."""

    load: Load
    rounds: tuple[Round, ...]

    @property
    def ratio(self) -> float:
        """Argosy's rate ÷ Triton's: above 1, Argosy is faster. Median of the rounds; 0 where there are none."""
        return self._median(lambda argosy, triton: argosy.rate / triton.rate)

    @property
    def p99_ratio(self) -> float:
        """Argosy's 99th percentile of the latency ÷ Triton's: below 1, Argosy is faster."""
        return self._median(lambda argosy, triton: argosy.p99_us / triton.p99_us)

    @property
    def cpu_ratio(self) -> float:
        """Argosy's CPU time a request ÷ Triton's: below 1, Argosy needs less."""
        return self._median(lambda argosy, triton: argosy.cpu_us / triton.cpu_us)

    def argosy(self, field: str) -> float:
        """The median of one of Argosy's figures: a field of `Measured`."""
        return self._median(lambda argosy, triton: getattr(argosy, field))

    def triton(self, field: str) -> float:
        """The median of one of Triton's figures."""
        return self._median(lambda argosy, triton: getattr(triton, field))

    def _median(self, of: Callable[[Measured, Measured], float]) -> float:
        return statistics.median([of(*each) for each in self.rounds]) if self.rounds else 0.0


def compare(
    argosy: Server, triton: Server, loads: Iterable[Load], rounds: int, window_ms: int, note: Note
) -> list[Cell]:
    """Every load on both; a load that fails on either has no rounds, and `note` is told why."""
    cells = []
    for load in loads:
        cell = Cell(load, _rounds(argosy, triton, load, rounds, window_ms, note))
        note(
            f"{load.model} {load.protocol} c={load.concurrency} {load.bytes} B: rate {cell.ratio:.2f}, "
            f"p99 {cell.p99_ratio:.2f}, CPU {cell.argosy('cpu_us'):.0f} / {cell.triton('cpu_us'):.0f} µs"
        )
        cells.append(cell)
    return cells


def _rounds(argosy: Server, triton: Server, load: Load, rounds: int, window_ms: int, note: Note) -> tuple[Round, ...]:
    try:
        return tuple((measure(argosy, load, window_ms), measure(triton, load, window_ms)) for _ in range(rounds))
    except LoadError as failure:
        note(f"{load}: {failure}")
        return ()
