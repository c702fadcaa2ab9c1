"""What a codec may do with the bytes of a client: return what they mean, or raise the error that its callers expect."""

from collections.abc import Callable
from typing import TypeVar

from argosy_runtime.errors import ErrorKind, ServingError
from argosy_runtime.messages import InferRequest
from argosy_runtime.tensors import split_strings

Result = TypeVar("Result")

CLIENTS = (ErrorKind.INVALID_ARG, ErrorKind.UNSUPPORTED, ErrorKind.INTERNAL)
"""INTERNAL is Triton's kind for JSON that cannot be read."""
PARSER = (
    "Unable to ",
    "attempt to ",
    "failed to parse the request JSON",
    "failed to get ",
    "Failed to ",
    "Expected JSON",
)
"""How Triton's messages about JSON begin; INTERNAL has no others."""


def outcome(decode: Callable[[], Result]) -> Result | None:
    """Return what a codec returns; of a refusal, which must be the client's, None."""
    try:
        return decode()
    except ServingError as error:
        assert error.kind in CLIENTS
        assert error.message
        assert error.message.encode("utf-8", "surrogateescape")
        if error.kind is ErrorKind.INTERNAL:
            bare = error.message.removeprefix("Converting keyword: 'parameters': ")
            assert bare.startswith(PARSER), error.message
        return None


def check_tensors(request: InferRequest, placed: frozenset[str] = frozenset()) -> None:
    """Check that each input has as much data as its shape and type say; those that are `placed` in memory have none."""
    for name, tensor in request.inputs.items():
        assert name == tensor.name
        if name in placed:
            assert tensor.data == b""
            continue
        array = tensor.array
        assert array.shape == tensor.shape
        if tensor.datatype == "BYTES":
            assert len(split_strings(tensor.data)) == array.size
        else:
            assert len(tensor.data) == array.nbytes == tensor.spec().size


def pieces(data: bytes, size: int) -> list[bytes]:
    """Return bytes in pieces of at most `size`."""
    return [data[at : at + size] for at in range(0, len(data), size)]
