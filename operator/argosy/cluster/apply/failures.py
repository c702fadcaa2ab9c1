"""Failed writes: which error is a refusal, which only the user can cure, and when others are retried. Pure.

Each object has its own back-off, so that one does not delay another. The pause doubles with each consecutive failure,
and is at least the API server's `Retry-After`. New content is written without a pause, except for a `Retry-After`.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

from argosy.cluster.client.errors import ApiError, ForbiddenError, InvalidError, NotFoundError, TooLargeError
from argosy.cluster.client.kinds import Kind
from argosy_common.backoff import backoff_s

FIRST_S, MOST_S = 0.5, 30.0
_FORGOTTEN_S = 600.0
"""Seconds without an attempt after which an object counts as no longer desired."""
_NO_WEBHOOK = "failed calling webhook"
_NO_RIGHT = re.compile(r"cannot (\w+) resource")


class RefusedError(Exception):
    """An object cannot be applied until a user changes something; the message says what."""


class NoNeedError(Exception):
    """An object need not be applied: its namespace is terminating."""


def judged(error: ApiError, kind: Kind, namespace: str) -> Exception:
    """Return what an error means for the object: RefusedError, NoNeedError, or the error itself where a retry may
    help.
    """
    if isinstance(error, ForbiddenError):
        return NoNeedError() if error.namespace_ends else RefusedError(_forbidden(error, kind, namespace))
    if isinstance(error, NotFoundError):
        return NoNeedError() if error.message.startswith("namespaces ") else RefusedError(_unknown(kind))
    if isinstance(error, TooLargeError):
        return RefusedError(
            f"is larger than the API server stores ({error.message}); spread its models over more servers"
        )
    if _NO_WEBHOOK in error.message:
        return RefusedError(f"waits for an admission webhook of the cluster that does not answer: {error.message}")
    if isinstance(error, InvalidError):
        return RefusedError(f"is not accepted by the API server: {error.message}")
    return error


def _forbidden(error: ForbiddenError, kind: Kind, namespace: str) -> str:
    verb = _NO_RIGHT.search(error.message)
    if verb is None:
        return f"is not admitted by the API server: {error.message}"  # a quota, a webhook, rights that it may not give
    return (
        f"the operator may not {verb.group(1)} {kind.plural} in namespace {namespace}: grant that to its service "
        f"account ({error.message})"
    )


def _unknown(kind: Kind) -> str:
    return f"the API server does not know {kind.api_version} {kind.name}; it is too old or too new for this release"


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
