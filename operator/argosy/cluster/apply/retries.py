"""What failed, object by object: each is tried again after a pause of its own, and holds up no other. Pure.

The pause doubles with each failure in a row, and is at least what the API server asks for (`Retry-After`). Another
content is another attempt, which waits for nothing but that.
"""

from collections.abc import Callable
from dataclasses import dataclass

from argosy.cluster.client.errors import ApiError
from argosy_common.backoff import backoff_s

FIRST_S, MOST_S = 0.5, 30.0
_FORGOTTEN_S = 600.0
"""After so long without an attempt nobody wants the object any more."""


@dataclass(frozen=True, slots=True)
class _Failed:
    content: object
    error: ApiError
    attempts: int
    due_s: float
    asked: bool


class Retries:
    """The objects whose last write failed, by identity. `clock` is steady, in seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._failed: dict[str, _Failed] = {}

    def check(self, identity: str, content: object) -> None:
        """Raise the last error, with the seconds that are left, where it is too early to write this content again."""
        known, now = self._failed.get(identity), self._clock()
        if known is None or now >= known.due_s or (known.content != content and not known.asked):
            return
        last = known.error
        error = type(last)(last.status, last.reason, last.message, last.causes)
        error.retry_after_s = known.due_s - now
        raise error

    def failed(self, identity: str, content: object, error: ApiError) -> None:
        """Note a failure; `error.retry_after_s` is set to the pause that follows."""
        before, now = self._failed.get(identity), self._clock()
        attempts = before.attempts + 1 if before is not None and before.content == content else 1
        asked = error.retry_after_s
        pause = max(backoff_s(attempts, FIRST_S, MOST_S), asked or 0.0)
        error.retry_after_s = pause
        self._failed = {name: each for name, each in self._failed.items() if now < each.due_s + _FORGOTTEN_S}
        self._failed[identity] = _Failed(content, error, attempts, now + pause, asked is not None)

    def done(self, identity: str) -> None:
        """Note that it was written, or needs not be."""
        self._failed.pop(identity, None)
