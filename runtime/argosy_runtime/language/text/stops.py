"""Stop strings, which end a text."""

from collections.abc import Sequence


class StopText:
    """The text of an answer up to the first of its stop strings.

    What may be the beginning of a stop string is held back until it is clear whether it is one.
    """

    def __init__(self, stops: Sequence[str], include: bool) -> None:
        self._stops = stops
        self._include = include
        self._deferred = ""
        self.stopped_by: str | None = None

    def next(self, new: str, searched: bool = True) -> str:
        """Return the text that is certain to belong to the answer. Unless `searched`, `new` has no stop string."""
        if not self._stops:
            return new
        text = self._deferred + new
        if not searched:
            self._deferred = ""
            return text
        matches = [(at, stop) for stop in self._stops if (at := text.find(stop)) >= 0]
        if matches:
            at, self.stopped_by = min(matches)
            self._deferred = ""
            return text[: at + len(self.stopped_by)] if self._include else text[:at]
        deferred = max((self._beginning(text, stop) for stop in self._stops), default=0)
        self._deferred = text[len(text) - deferred :]
        return text[: len(text) - deferred]

    def last(self) -> str:
        """Return the text that was held back, once no more comes."""
        deferred, self._deferred = self._deferred, ""
        return deferred

    @staticmethod
    def _beginning(text: str, stop: str) -> int:
        """Return how many characters at the end of `text` are the beginning of `stop`."""
        return next((n for n in range(min(len(stop) - 1, len(text)), 0, -1) if text.endswith(stop[:n])), 0)
