"""Back-off of failed writes, per object, so that one object does not delay another. Pure.

The pause doubles with each consecutive failure, and is at least the API server's `Retry-After`. New content is written
without a pause, except for a `Retry-After`.
"""

from collections.abc import Callable
from dataclasses import dataclass

from argosy.cluster.client.errors import ApiError
from argosy_common.backoff import backoff_s

FIRST_S, MOST_S = 0.5, 30.0
_FORGOTTEN_S = 600.0
"""After so many seconds without an attempt an object counts as no longer desired."""


@dataclass(frozen=True, slots=True)
class _Failed:
    content: object
    error: ApiError
    attempts: int
    due_s: float
    server_requested: bool


class Retries:
    """The objects whose last write failed, by identity. `clock` is monotonic, in seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._failed: dict[str, _Failed] = {}

    def check(self, identity: str, content: object) -> None:
        """Raise the last error, with the remaining seconds, where it is too early to write this content again."""
        failed, now = self._failed.get(identity), self._clock()
        if failed is None or now >= failed.due_s or (failed.content != content and not failed.server_requested):
            return
        last = failed.error
        error = type(last)(last.status, last.reason, last.message, last.causes)
        error.retry_after_s = failed.due_s - now
        raise error

    def failed(self, identity: str, content: object, error: ApiError) -> None:
        """Record a failure and set `error.retry_after_s` to the pause that follows."""
        before, now = self._failed.get(identity), self._clock()
        attempts = before.attempts + 1 if before is not None and before.content == content else 1
        requested = error.retry_after_s
        pause = max(backoff_s(attempts, FIRST_S, MOST_S), requested or 0.0)
        error.retry_after_s = pause
        self._failed = {name: former for name, former in self._failed.items() if now < former.due_s + _FORGOTTEN_S}
        self._failed[identity] = _Failed(content, error, attempts, now + pause, requested is not None)

    def done(self, identity: str) -> None:
        """Forget the failures of an object that was written."""
        self._failed.pop(identity, None)
