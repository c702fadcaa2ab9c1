"""The memory for bodies that are being read: those of requests that are in no queue yet."""

from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus

from .openai import BodyError


class BodyBudget:
    """At most so many bytes of bodies at once, as their heads declare them."""

    def __init__(self, size: int) -> None:
        self._left = size

    @contextmanager
    def reading(self, length: int) -> Iterator[None]:
        """Reserve a body's bytes while it is read. Raises BodyError where there is no room."""
        if length > self._left:
            raise BodyError(HTTPStatus.TOO_MANY_REQUESTS, "too many requests are being read: try again later")
        self._left -= length
        try:
            yield
        finally:
            self._left += length
