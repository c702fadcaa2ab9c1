"""Heads of requests to a cloud's port, as those of the V2 protocol that they stand for."""

from collections.abc import Awaitable, Callable

from argosy_runtime.errors import invalid
from argosy_runtime.frontends.http.infer import HEADER_LENGTH
from argosy_runtime.frontends.http.wire.application import Handler
from argosy_runtime.frontends.http.wire.heads import Head
from argosy_runtime.frontends.http.wire.request_context import RequestContext

_CONTENT_TYPE = b"content-type"
_DROPPED = frozenset((HEADER_LENGTH, b"content-encoding", b"accept-encoding"))
"""Headers that mean nothing here: the content type says how long the JSON is, and nothing is compressed."""


def v2_head(head: Head, method: str, path: str, binary_type: str) -> Head:
    """Return the head of the same request to a path of the V2 protocol.

    `binary_type` begins the content type of bodies with binary tensors, and the length of their JSON follows. Raises
    INVALID_ARG where that is no number, or something stands before it.
    """
    headers = {name: value for name, value in head.headers.items() if name not in _DROPPED}
    content_type = headers.get(_CONTENT_TYPE, b"").decode("latin-1")
    before, is_binary, length = content_type.partition(binary_type)
    if is_binary and before:
        raise invalid(f"expect MIME type for binary data starts with '{binary_type}', got: {content_type}")
    if is_binary and not (length.isascii() and length.isdigit()):
        raise invalid(f"Unable to parse inference header size, got: {length}")
    if is_binary:
        headers[HEADER_LENGTH] = length.encode()
    translated = Head(method, path, headers, head.old, head.keep_alive)
    translated.binary_type = binary_type
    return translated


LookUp = Callable[[Head], Awaitable[Handler]]


class Later:
    """A handler that is looked up for each request, because it depends on the models that are loaded."""

    def __init__(self, head: Head, look_up: LookUp) -> None:
        self._head = head
        self._look_up = look_up

    def begin(self, context: RequestContext) -> None:
        context.run(self._begin(context))

    async def _begin(self, context: RequestContext) -> None:
        handler: Handler = await self._look_up(self._head)
        handler.begin(context)
