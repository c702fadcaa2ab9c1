"""Measures the machine every few seconds, beside the event loop, and keeps what came of it until it is asked for."""

import logging
import threading
from collections.abc import Callable, Sequence
from time import monotonic
from typing import Protocol

from argosy_runtime.telemetry.exposition import Family

_log = logging.getLogger("argosy.telemetry")

_STALE_INTERVALS = 5
"""What is older than so many intervals is not told any more: who reads it would take it for now."""


class Reader(Protocol):
    """Measures one kind of thing."""

    def read(self) -> list[Family]:
        """Return its families now. Called by one thread; may raise anything."""


class _Kept:
    """A reader, its families where nothing is known, and those of its last reading with the time of that."""

    def __init__(self, reader: Reader, none: list[Family]) -> None:
        self.reader = reader
        self.none = none
        self.last: tuple[float, list[Family]] | None = None
        self._trouble = ""

    def failed(self, trouble: str) -> None:
        """In the log, once for as long as it is the same."""
        if trouble != self._trouble:
            self._trouble = trouble
            _log.warning("%s and what belongs to it cannot be measured: %s", self.none[0].name, trouble)


class MachineSampling:
    """Readers, each with its families where nothing is known; asked every `interval` seconds.

    By a daemon thread, which nobody waits for: a driver may take its time, or never answer.
    """

    def __init__(
        self,
        readers: Sequence[tuple[Reader, list[Family]]],
        interval: float,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._kept = [_Kept(reader, none) for reader, none in readers]
        self._interval = interval
        self._clock = clock
        self._over = threading.Event()

    def start(self) -> None:
        """Measure from now on."""
        if self._kept:
            threading.Thread(target=self._until_over, name="machine metrics", daemon=True).start()

    def stop(self) -> None:
        """No more."""
        self._over.set()

    def families(self) -> list[Family]:
        """Return what was last measured, without what is too old to be told."""
        oldest = self._clock() - _STALE_INTERVALS * self._interval
        families: list[Family] = []
        for kept in self._kept:
            last = kept.last
            families += last[1] if last is not None and last[0] >= oldest else kept.none
        return families

    def sample(self) -> None:
        """Ask every reader once."""
        for kept in self._kept:
            try:
                families = kept.reader.read()
            except Exception as error:
                kept.failed(repr(error))
            else:
                kept.last = (self._clock(), families)

    def _until_over(self) -> None:
        self.sample()
        while not self._over.wait(self._interval):
            self.sample()
