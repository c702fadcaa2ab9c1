"""The errors of serving.

Every front end maps an `ErrorKind` to its own status in one table; domain code never names an HTTP or gRPC code.

    ServingError
     ├─ kind     which of Triton's error codes it is (TRITONSERVER_Error_Code)
     ├─ message  what the client reads
     ├─ reason   under which metrics count the failure; None where a model answered with an error of its own, which
     │           counts as an answer
     ├─ device_error
     │           a framework's message about an error of its device, after which its process cannot use the device
     └─ instance_lost
                 whether the instance ended that had the request, so that another one may answer it
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


_LABELS = {
    ErrorKind.INVALID_ARG: "Invalid argument",
    ErrorKind.NOT_FOUND: "Not found",
    ErrorKind.ALREADY_EXISTS: "Already exists",
}

CLIENT_FAULTS = frozenset(
    (ErrorKind.INVALID_ARG, ErrorKind.NOT_FOUND, ErrorKind.UNSUPPORTED, ErrorKind.ALREADY_EXISTS, ErrorKind.CANCELLED)
)
"""Kinds of errors that a request causes, whatever model answers it."""


class FailureReason(StrEnum):
    """The reasons of failures that label argosy_request_failures_total: Triton's, and three that it does not have.

    REJECTED: the queue was full. TIMEOUT: it waited longer than it may. OUT_OF_MEMORY: the model had not enough.
    INVALID: the request was wrong, and no model failed.
    """

    REJECTED = "REJECTED"
    TIMEOUT = "TIMEOUT"
    OUT_OF_MEMORY = "OUT_OF_MEMORY"
    CANCELED = "CANCELED"
    INVALID = "INVALID"
    BACKEND = "BACKEND"
    OTHER = "OTHER"


class ServingError(Exception):
    """An error that is reported to a client or an operator, with its kind."""

    def __init__(
        self,
        kind: ErrorKind,
        message: str,
        reason: FailureReason | None = FailureReason.OTHER,
        device_error: str = "",
        instance_lost: bool = False,
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.reason = reason
        self.device_error = device_error
        self.instance_lost = instance_lost

    @property
    def label(self) -> str:
        """Kind as Triton writes it before the message of a version that did not load."""
        return f"{_LABELS.get(self.kind) or self.kind.value.capitalize()}: "


class DecoupledModelError(ServingError):
    """A request for exactly one response to a model that sends any number. The front ends prepend their names."""

    def __init__(self) -> None:
        super().__init__(ErrorKind.UNSUPPORTED, "doesn't support models with decoupled transaction policy")


class FaultyInputsError(ServingError):
    """A request, some of whose inputs have data that does not fit: `faults` by the name of the input.

    The message is one of them. Which fault of a request is reported depends on its model, too: see
    `modelconfig.shapes.first_fault` for the rest, `inputs` (name → V2 datatype and shape), `outputs` and `log_prefix`.
    """

    def __init__(
        self,
        message: str,
        faults: dict[str, str],
        inputs: dict[str, tuple[str, tuple[int, ...]]],
        outputs: tuple[str, ...],
        log_prefix: str,
    ) -> None:
        super().__init__(ErrorKind.INVALID_ARG, message)
        self.faults = faults
        self.inputs = inputs
        self.outputs = outputs
        self.log_prefix = log_prefix


def invalid(message: str) -> ServingError:
    """Return the error of an invalid request or configuration."""
    return ServingError(ErrorKind.INVALID_ARG, message)


def not_found(message: str) -> ServingError:
    """Return the error of a model, version or path that does not exist."""
    return ServingError(ErrorKind.NOT_FOUND, message)


def unavailable(message: str, reason: FailureReason = FailureReason.OTHER) -> ServingError:
    """Return the error of what exists but cannot answer now."""
    return ServingError(ErrorKind.UNAVAILABLE, message, reason)


def cancelled() -> ServingError:
    """Return the error of a request whose client has gone."""
    return ServingError(ErrorKind.CANCELLED, "the request was cancelled", FailureReason.CANCELED)


def unsupported(message: str) -> ServingError:
    """Return the error of a well-formed request for what this server does not do."""
    return ServingError(ErrorKind.UNSUPPORTED, message)


def internal(message: str, reason: FailureReason = FailureReason.BACKEND, device_error: str = "") -> ServingError:
    """Return the error of a model or a server that failed while it worked on a good request."""
    return ServingError(ErrorKind.INTERNAL, message, reason, device_error)
