"""Measures the machine every few seconds, in a thread of its own, and keeps the last readings."""

import logging
import threading
from collections.abc import Callable, Sequence
from time import monotonic
from typing import Protocol

from argosy_runtime.telemetry.exposition import Family

_log = logging.getLogger("argosy.telemetry")

_STALE_INTERVALS = 5
"""Number of intervals after which a reading is no longer exposed, because a scraper would take it for current."""


class Reader(Protocol):
    """Measures one part of the machine."""

    def read(self) -> list[Family]:
        """Return the families now. Called by one thread; may raise any exception."""


class _Sampled:
    """A reader, its families without values, and those of its last reading with their time."""

    def __init__(self, reader: Reader, none: list[Family]) -> None:
        self.reader = reader
        self.none = none
        self.last: tuple[float, list[Family]] | None = None
        self._error = ""

    def failed(self, error: str) -> None:
        """Log the error, unless it is the last one again."""
        if error != self._error:
            self._error = error
            _log.warning("%s and what belongs to it cannot be measured: %s", self.none[0].name, error)


class MachineSampling:
    """Calls readers, each with its families without values, every `interval` seconds.

    A daemon thread does, because a driver may take long, or never answer.
    """

    def __init__(
        self,
        readers: Sequence[tuple[Reader, list[Family]]],
        interval: float,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._sampled = [_Sampled(reader, none) for reader, none in readers]
        self._interval = interval
        self._clock = clock
        self._over = threading.Event()

    def start(self) -> None:
        """Start the thread."""
        if self._sampled:
            threading.Thread(target=self._until_over, name="machine metrics", daemon=True).start()

    def stop(self) -> None:
        """End the thread with its next reading."""
        self._over.set()

    def families(self) -> list[Family]:
        """Return the last readings, without those that are too old."""
        oldest = self._clock() - _STALE_INTERVALS * self._interval
        families: list[Family] = []
        for sampled in self._sampled:
            last = sampled.last
            families += last[1] if last is not None and last[0] >= oldest else sampled.none
        return families

    def sample(self) -> None:
        """Call every reader once."""
        for sampled in self._sampled:
            try:
                families = sampled.reader.read()
            except Exception as error:
                sampled.failed(repr(error))
            else:
                sampled.last = (self._clock(), families)

    def _until_over(self) -> None:
        self.sample()
        while not self._over.wait(self._interval):
            self.sample()
