"""What an API server's refusals become, translated here once.

ApiError
├── ForbiddenError      403: no right, a quota, an admission webhook, a namespace that is being deleted
├── NotFoundError       404: no such object, namespace or kind
├── ConflictError       409: it exists already, is another one, or changed meanwhile
├── GoneError           410: what a watch asks for is no longer kept
├── TooLargeError       413, and etcd's own limit
├── InvalidError        400, 422: the object is not as it must be
└── UnreachableError    no answer, or one that says to come back: 429, 5xx
"""

import json
from collections.abc import Mapping
from typing import Any

_NAMESPACE_TERMINATING = "NamespaceTerminating"
_TOO_LARGE = "request is too large"
_SHOWN = 300
_LONGEST_PAUSE_S = 300.0
"""The longest that an answer may have a caller wait."""


class ApiError(Exception):
    """The API server did not do what it was asked.

    `status` is the HTTP status, 0 where there was no answer; `reason` and `causes` are Kubernetes' words for machines,
    `message` is for people. `retry_after_s`: how many seconds to wait before another attempt, where that is known.
    """

    retry_after_s: float | None = None

    def __init__(self, status: int, reason: str, message: str, causes: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.status, self.reason, self.message, self.causes = status, reason, message, causes


class ForbiddenError(ApiError):
    """It is not allowed."""

    @property
    def namespace_ends(self) -> bool:
        """Whether that is so because the namespace is being deleted."""
        return _NAMESPACE_TERMINATING in self.causes


class NotFoundError(ApiError):
    """There is no such object, namespace or kind."""


class ConflictError(ApiError):
    """It exists already, is another one than was meant, or changed meanwhile."""


class GoneError(ApiError):
    """The version that a watch begins at is no longer kept: list again."""


class TooLargeError(ApiError):
    """The object is larger than the API server stores."""


class InvalidError(ApiError):
    """The object is not as the API server wants it."""


class UnreachableError(ApiError):
    """No answer, or one that says to come back later."""


_BY_STATUS: Mapping[int, type[ApiError]] = {
    400: InvalidError,
    403: ForbiddenError,
    404: NotFoundError,
    408: UnreachableError,
    409: ConflictError,
    410: GoneError,
    413: TooLargeError,
    422: InvalidError,
    429: UnreachableError,
}


def translated(status: int, body: str | None, headers: Mapping[str, str] | None = None) -> ApiError:
    """Return the error that an answer with this HTTP status says; `headers` may have a `Retry-After` in seconds."""
    error = _translated(status, body)
    said = {name.lower(): value for name, value in (headers or {}).items()}.get("retry-after", "")
    error.retry_after_s = min(float(said), _LONGEST_PAUSE_S) if said.isdecimal() else None
    return error


def _translated(status: int, body: str | None) -> ApiError:
    try:
        said = json.loads(body or "")
    except ValueError:
        said = None
    if not isinstance(said, dict):
        said = {"message": (body or "")[:_SHOWN].strip() or f"HTTP status {status}"}
    return of_status(said | {"code": status})


def of_status(said: Mapping[str, Any]) -> ApiError:
    """Return the error that a `Status` object says, as answers and watches hold it."""
    status, message = int(said.get("code") or 0), str(said.get("message") or said.get("reason") or "no reason given")
    causes = (said.get("details") or {}).get("causes") or ()
    reasons = tuple(str(cause.get("reason", "")) for cause in causes)
    kind = _BY_STATUS.get(status, UnreachableError if status >= 500 else ApiError)
    if _TOO_LARGE in message:
        kind = TooLargeError
    return kind(status, str(said.get("reason") or ""), message, reasons)
