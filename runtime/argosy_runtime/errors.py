"""What can go wrong while serving, said once.

Every front end maps an `ErrorKind` to its own status in one table; domain code never names an HTTP or gRPC code.

    ServingError
     ├─ kind     which of Triton's error codes it is (TRITONSERVER_Error_Code)
     ├─ message  what the client reads
     ├─ reason   as what metrics count the failure; None where a model answered with an error of its own, which is an
     │           answer and counts as one
     └─ device_error
                 a framework's words where its device met an error, after which nothing works in the process that met it
"""

from enum import StrEnum


class ErrorKind(StrEnum):
    """Triton's error codes, by name."""

    UNKNOWN = "unknown"
    INTERNAL = "internal"
    NOT_FOUND = "not_found"
    INVALID_ARG = "invalid_arg"
    UNAVAILABLE = "unavailable"
    UNSUPPORTED = "unsupported"
    ALREADY_EXISTS = "already_exists"
    CANCELLED = "cancelled"


class FailureReason(StrEnum):
    """Why a request failed, as argosy_request_failures_total labels it: Triton's reasons, and two that it has not.

    REJECTED: the queue was full. TIMEOUT: it waited longer than it may. OUT_OF_MEMORY: the model had not enough.
    """

    REJECTED = "REJECTED"
    TIMEOUT = "TIMEOUT"
    OUT_OF_MEMORY = "OUT_OF_MEMORY"
    CANCELED = "CANCELED"
    BACKEND = "BACKEND"
    OTHER = "OTHER"


class ServingError(Exception):
    """An error a client or an operator is told of, with its kind."""

    def __init__(
        self,
        kind: ErrorKind,
        message: str,
        reason: FailureReason | None = FailureReason.OTHER,
        device_error: str = "",
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.reason = reason
        self.device_error = device_error


class DecoupledModelError(ServingError):
    """Exactly one response was asked of a model that sends any number. The front ends put their own names before it."""

    def __init__(self) -> None:
        super().__init__(ErrorKind.UNSUPPORTED, "doesn't support models with decoupled transaction policy")


def invalid(message: str) -> ServingError:
    """Return the error of a request or a configuration that is wrong."""
    return ServingError(ErrorKind.INVALID_ARG, message)


def not_found(message: str) -> ServingError:
    """Return the error of a model, version or path that does not exist."""
    return ServingError(ErrorKind.NOT_FOUND, message)


def unavailable(message: str, reason: FailureReason = FailureReason.OTHER) -> ServingError:
    """Return the error of what exists but cannot answer now."""
    return ServingError(ErrorKind.UNAVAILABLE, message, reason)


def unsupported(message: str) -> ServingError:
    """Return the error of a well-formed request for what this server does not do."""
    return ServingError(ErrorKind.UNSUPPORTED, message)


def internal(message: str, reason: FailureReason = FailureReason.BACKEND, device_error: str = "") -> ServingError:
    """Return the error of a model or a server that failed while it worked on a good request."""
    return ServingError(ErrorKind.INTERNAL, message, reason, device_error)
