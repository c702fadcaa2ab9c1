"""Triton's checks of keys, offsets and sizes, with its messages. Numbers are of 64 bits without a sign, sizes bytes."""

from typing import Final

from argosy_runtime.errors import ErrorKind, ServingError, invalid

RESERVED_PREFIX: Final = "triton_python_backend_shm_region_"
"""The beginning of keys that Triton's Python backend uses for itself."""
MAX_NUMBER: Final = 2**64 - 1
LONGEST_NAME: Final = 1024
CUDA_HANDLE_SIZE: Final = 64
"""The size of a cudaIpcMemHandle_t."""


def check_name(name: str) -> None:
    """Raise INVALID_ARG for the name of a region that is too long to be kept."""
    if len(name) > LONGEST_NAME:
        raise invalid(f"the name of a shared memory region has at most {LONGEST_NAME} characters, got {len(name)}")


def check_key(name: str, key: str) -> None:
    """Raise INVALID_ARG for a key that no client may use."""
    bare = key.lstrip("/")
    if not bare:
        raise invalid(f"cannot register shared memory region '{name}' - invalid shm key '{key}'")
    if bare.startswith(RESERVED_PREFIX):
        raise invalid(
            f"cannot register shared memory region '{name}' with key '{key}' as the key contains the reserved prefix "
            f"'{RESERVED_PREFIX}'"
        )


def check_extent(name: str, available: int, offset: int, size: int, page: int) -> None:
    """Raise INVALID_ARG for a region that its memory object of `available` bytes does not hold.

    It begins at a multiple of `page`, and is not empty, as memory that can be mapped.
    """
    if offset + size > available:
        raise registration_failed(name, "invalid args")
    if not size or offset % page:
        raise registration_failed(name, "unable to process address spaceInvalid argument")


def registration_failed(name: str, reason: str) -> ServingError:
    """Return the error of a region that cannot be registered."""
    return invalid(f"failed to register shared memory region '{name}': {reason}")


def check_location(name: str, region_size: int, offset: int, size: int) -> None:
    """Raise INVALID_ARG for a tensor that is not in a region of `region_size` bytes."""
    if offset >= region_size:
        raise invalid(f"Invalid offset for shared memory region: '{name}'")
    if size > MAX_NUMBER - offset:
        raise invalid(
            f"Integer overflow detected: byte_size ({size}) + offset ({offset}) exceeds maximum value ({MAX_NUMBER}) "
            f"for region '{name}'"
        )
    if offset + size > region_size:
        raise invalid(f"Invalid offset + byte size for shared memory region: '{name}'")


def check_output(output: str, available: int, needed: int) -> None:
    """Raise INTERNAL for an output that does not fit its location."""
    if needed > available:
        raise ServingError(
            ErrorKind.INTERNAL,
            f"shared memory size specified with the request for output '{output}' ({available} bytes) should be at "
            f"least {needed} bytes to hold the results",
        )
