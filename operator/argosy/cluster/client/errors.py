"""Errors of an API server, translated here once.

ApiError
├── ForbiddenError      403: no right, a quota, an admission webhook, a namespace that is being deleted
├── NotFoundError       404: no such object, namespace or kind
├── ConflictError       409: it exists already, has another uid, or changed meanwhile
├── GoneError           410: the resource version of a watch or list has expired
├── TooLargeError       413, and etcd's own limit
├── InvalidError        400, 422: the object is invalid
└── UnreachableError    no response, or one that is worth a retry: 429, 5xx
"""

import json
from collections.abc import Mapping
from typing import Any

_NAMESPACE_TERMINATING = "NamespaceTerminating"
_TOO_LARGE = "request is too large"
_SHOWN = 300
_LONGEST_PAUSE_S = 300.0
"""The longest pause that is accepted from a `Retry-After`."""


class ApiError(Exception):
    """A request to the API server failed.

    `status`: the HTTP status, 0 without a response; `reason` and `causes`: Kubernetes' machine-readable ones;
    `message`: for people; `retry_after_s`: seconds before another attempt, None without a limit.
    """

    retry_after_s: float | None = None

    def __init__(self, status: int, reason: str, message: str, causes: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.status, self.reason, self.message, self.causes = status, reason, message, causes


class ForbiddenError(ApiError):
    """The request is not allowed."""

    @property
    def namespace_ends(self) -> bool:
        """Whether the namespace is terminating."""
        return _NAMESPACE_TERMINATING in self.causes


class NotFoundError(ApiError):
    """The object, namespace or kind does not exist."""


class ConflictError(ApiError):
    """The object exists already, has another uid, or changed meanwhile."""


class GoneError(ApiError):
    """The resource version of a watch or list has expired: relist."""


class TooLargeError(ApiError):
    """The object is larger than the API server stores."""


class InvalidError(ApiError):
    """The object is invalid."""


class UnreachableError(ApiError):
    """No response, or one that is worth a retry."""


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
    """Return the error of a response with this HTTP status; `headers` may have a `Retry-After` in seconds."""
    error = _translated(status, body)
    pause = {name.lower(): value for name, value in (headers or {}).items()}.get("retry-after", "")
    error.retry_after_s = min(float(pause), _LONGEST_PAUSE_S) if pause.isdecimal() else None
    return error


def _translated(status: int, body: str | None) -> ApiError:
    try:
        document = json.loads(body or "")
    except ValueError:
        document = None
    if not isinstance(document, dict):
        document = {"message": (body or "")[:_SHOWN].strip() or f"HTTP status {status}"}
    return of_status(document | {"code": status})


def of_status(document: Mapping[str, Any]) -> ApiError:
    """Return the error of a `Status` object, as responses and watches contain it."""
    status, reason = int(document.get("code") or 0), str(document.get("reason") or "")
    message = str(document.get("message") or reason or "no reason given")
    causes = (document.get("details") or {}).get("causes") or ()
    reasons = tuple(str(cause.get("reason", "")) for cause in causes)
    kind = _BY_STATUS.get(status, UnreachableError if status >= 500 else ApiError)
    if _TOO_LARGE in message:
        kind = TooLargeError
    return kind(status, reason, message, reasons)
