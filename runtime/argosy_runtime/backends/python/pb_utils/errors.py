"""`TritonError` and `TritonModelException`: the errors of a Python model."""

import traceback
from collections.abc import Iterator
from enum import Enum, IntEnum
from itertools import dropwhile
from types import FrameType
from typing import Final

from argosy_runtime.errors import ErrorKind, ServingError

from . import arguments

_IMPORTS: Final = "<frozen importlib"
_NO_MESSAGE: Final = "<EMPTY MESSAGE>"
_SERVER: Final = __name__.partition(".")[0] + "."


class Constant(IntEnum):
    """A number of Triton's API, which text shows by its name."""

    __str__ = Enum.__str__
    __format__ = Enum.__format__


class ErrorCode(Constant):
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
    """An error that a model puts on one response. `code` is one of the class's constants."""

    UNKNOWN = ErrorCode.UNKNOWN
    INTERNAL = ErrorCode.INTERNAL
    NOT_FOUND = ErrorCode.NOT_FOUND
    INVALID_ARG = ErrorCode.INVALID_ARG
    UNAVAILABLE = ErrorCode.UNAVAILABLE
    UNSUPPORTED = ErrorCode.UNSUPPORTED
    ALREADY_EXISTS = ErrorCode.ALREADY_EXISTS
    CANCELLED = ErrorCode.CANCELLED

    def __init__(self, message: str, code: ErrorCode = ErrorCode.INTERNAL) -> None:
        self._message = arguments.text("message", message)
        if not isinstance(code, ErrorCode):
            raise TypeError(f"code must be one of TritonError's, not {code!r}")
        self._code = code

    def code(self) -> ErrorCode:
        """Return Triton's error code."""
        return self._code

    def message(self) -> str:
        """Return the message for the client."""
        return self._message

    def __repr__(self) -> str:
        return f"TritonError({self._message!r}, {self._code.name})"


class TritonModelException(Exception):  # noqa: N818 - Triton's name for it
    """Raised by `triton_python_backend_utils`, and free for models to raise."""


class BrokenContractError(Exception):
    """A violation of the backend's contract by a model, reported as it is, without a type or a place in the code."""


def to_serving_error(error: TritonError) -> ServingError:
    """Return the server's error for one that a model answers with."""
    return ServingError(ErrorKind(error.code().name.lower()), error.message(), reason=None)


def from_serving_error(error: ServingError) -> TritonError:
    """Return a model's error for one of the server."""
    return TritonError(error.message, ErrorCode[error.kind.name])


def describe(error: BaseException) -> str:
    """Return `Type: message` and the frames, innermost first, without the server's own.

    As in Triton, frames of the import system are among them where code that they imported is.
    """
    if isinstance(error, BrokenContractError):
        return str(error)
    head = f"{type(error).__name__}: {str(error) or _NO_MESSAGE}"
    own = [
        (frame.f_code.co_filename, number, frame.f_code.co_name)
        for frame, number in _stack(error)
        if not str(frame.f_globals.get("__name__", "")).startswith(_SERVER)
    ]
    frames = list(dropwhile(lambda frame: frame[0].startswith(_IMPORTS), own))
    if not frames:
        return head
    lines = "".join(f"  {file}({line}): {function}\n" for file, line, function in frames)
    return f"{head}\n\nAt:\n{lines}"


def _stack(error: BaseException) -> Iterator[tuple[FrameType, int]]:
    """Yield the frames and lines from where an exception was raised to where it was caught.

    The traceback alone lacks the import system's frames.
    """
    traced = list(traceback.walk_tb(error.__traceback__))
    outer: FrameType | None = None
    stack: list[tuple[FrameType, int]] = []
    for frame, line in traced:
        stack = [(frame, line), *_between(frame, outer), *stack]
        outer = frame
    yield from stack


def _between(inner: FrameType, outer: FrameType | None) -> list[tuple[FrameType, int]]:
    """Return the frames between two of a traceback, innermost first. A compiled function's is on no stack: none."""
    between: list[tuple[FrameType, int]] = []
    frame = inner.f_back
    while frame is not None and frame is not outer:
        between.append((frame, frame.f_lineno))
        frame = frame.f_back
    return between if frame is not None else []
