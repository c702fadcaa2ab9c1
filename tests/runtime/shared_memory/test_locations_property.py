"""Whatever offsets and sizes a client sends, a location is in its region or refused."""

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from argosy_runtime.errors import ErrorKind, ServingError
from argosy_runtime.shared_memory.checks import MAX_NUMBER, check_extent, check_location

NUMBERS = st.one_of(
    st.integers(0, 300), st.integers(0, MAX_NUMBER), st.integers(MAX_NUMBER - 300, MAX_NUMBER), st.just(1 << 63)
)
PAGE = 16


def refusal(check: Callable[[], None]) -> str:
    """Return the message of a check's refusal, "" where there is none."""
    try:
        check()
    except ServingError as error:
        return error.message if error.kind is ErrorKind.INVALID_ARG else repr(error)
    return ""


@given(size=st.integers(1, 256), offset=NUMBERS, length=NUMBERS)
def test_a_location_is_in_its_region_or_refused(size: int, offset: int, length: int) -> None:
    if offset >= size:
        expected = "Invalid offset for shared memory region: 'r'"
    elif offset + length > MAX_NUMBER:
        expected = (
            f"Integer overflow detected: byte_size ({length}) + offset ({offset}) exceeds maximum value "
            "(18446744073709551615) for region 'r'"
        )
    elif length > size - offset:
        expected = "Invalid offset + byte size for shared memory region: 'r'"
    else:
        expected = ""
    assert refusal(lambda: check_location("r", size, offset, length)) == expected


@given(available=st.integers(0, 256), offset=NUMBERS, size=NUMBERS)
def test_a_region_is_in_its_memory_object_or_refused(available: int, offset: int, size: int) -> None:
    start = "failed to register shared memory region 'r': "
    if offset + size > available:
        expected = f"{start}invalid args"
    elif size == 0 or offset % PAGE:
        # What mmap would refuse, in Triton's words.
        expected = f"{start}unable to process address spaceInvalid argument"
    else:
        expected = ""
    assert refusal(lambda: check_extent("r", available, offset, size, PAGE)) == expected
