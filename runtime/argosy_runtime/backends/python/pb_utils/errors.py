"""`TritonError` and `TritonModelException`: how a Python model says that something went wrong."""

from enum import IntEnum

from argosy_runtime.errors import ErrorKind, ServingError


class ErrorCode(IntEnum):
    """TRITONSERVER_Error_Code, with Triton's numbers."""

    UNKNOWN = 0
    INTERNAL = 1
    NOT_FOUND = 2
    INVALID_ARG = 3
    UNAVAILABLE = 4
    UNSUPPORTED = 5
    ALREADY_EXISTS = 6
    CANCELLED = 7


class TritonError:
    """An error a model puts on one response. `code` is one of the class's constants."""

    UNKNOWN = ErrorCode.UNKNOWN
    INTERNAL = ErrorCode.INTERNAL
    NOT_FOUND = ErrorCode.NOT_FOUND
    INVALID_ARG = ErrorCode.INVALID_ARG
    UNAVAILABLE = ErrorCode.UNAVAILABLE
    UNSUPPORTED = ErrorCode.UNSUPPORTED
    ALREADY_EXISTS = ErrorCode.ALREADY_EXISTS
    CANCELLED = ErrorCode.CANCELLED

    def __init__(self, message: str, code: int = ErrorCode.INTERNAL) -> None:
        self._message = str(message)
        self._code = ErrorCode(code)

    def code(self) -> ErrorCode:
        """Return which of Triton's error codes this is."""
        return self._code

    def message(self) -> str:
        """Return what the client reads."""
        return self._message

    def __repr__(self) -> str:
        return f"TritonError({self._message!r}, {self._code.name})"


class TritonModelException(Exception):  # noqa: N818 - Triton's name for it
    """Raised by `triton_python_backend_utils`, and free for models to raise."""


class BrokenContractError(Exception):
    """What the server finds wrong with what a model returned: told as it is, without a type or a place in the code."""


def to_serving_error(error: TritonError) -> ServingError:
    """Return the server's form of an error that a model answers with."""
    return ServingError(ErrorKind(error.code().name.lower()), error.message(), reason=None)


def from_serving_error(error: ServingError) -> TritonError:
    """Return a model's form of the server's error."""
    return TritonError(error.message, ErrorCode[error.kind.name])
