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
"""The subject's measurement and its peer's, one right after the other."""


@dataclass(frozen=True)
class Cell:
    """One load, and its rounds: none where a server failed."""

    load: Load
    rounds: tuple[Round, ...]

    @property
    def ratio(self) -> float:
        """The subject's rate ÷ its peer's: above 1, the subject is faster. Median of the rounds, 0 without any."""
        return self._median(lambda subject, peer: subject.rate / peer.rate)

    @property
    def p99_ratio(self) -> float:
        """The subject's 99th percentile of the latency ÷ its peer's: below 1, the subject is faster."""
        return self._median(lambda subject, peer: subject.p99_us / peer.p99_us)

    @property
    def cpu_ratio(self) -> float:
        """The subject's CPU time a request ÷ its peer's: below 1, the subject needs less."""
        return self._median(lambda subject, peer: subject.cpu_us / peer.cpu_us)

    def subject(self, field: str) -> float:
        """Return the median of one of the subject's figures: a field of `Measured`."""
        return self._median(lambda subject, peer: getattr(subject, field))

    def peer(self, field: str) -> float:
        """Return the median of one of its peer's figures."""
        return self._median(lambda subject, peer: getattr(peer, field))

    def _median(self, of: Callable[[Measured, Measured], float]) -> float:
        return statistics.median([of(*pair) for pair in self.rounds]) if self.rounds else 0.0


def compare(
    subject: Server, peer: Server, loads: Iterable[Load], rounds: int, window_ms: int, note: Note
) -> list[Cell]:
    """Measure every load on both; a round that fails on either does not count, and `note` gets the reason."""
    cells = []
    for load in loads:
        cell = Cell(load, _rounds(subject, peer, load, rounds, window_ms, note))
        note(
            f"{load.model} {load.protocol} c={load.concurrency} {load.bytes} B: rate {cell.ratio:.2f}, "
            f"p99 {cell.p99_ratio:.2f}, CPU {cell.subject('cpu_us'):.0f} / {cell.peer('cpu_us'):.0f} µs"
        )
        cells.append(cell)
    return cells


def _rounds(subject: Server, peer: Server, load: Load, rounds: int, window_ms: int, note: Note) -> tuple[Round, ...]:
    done: list[Round] = []
    for _ in range(rounds):
        try:
            done.append((measure(subject, load, window_ms), measure(peer, load, window_ms)))
        except LoadError as failure:
            note(f"a round of {load} failed: {failure}")
    return tuple(done)
