"""What came with a request of OpenAI's API: its headers, and the fields of its body."""

from msgspec import Struct

from argosy_runtime.frontends.http.wire.heads import Head
from argosy_runtime.messages import Parameter


class BodyOrigin:
    """The origin of the inference requests that one body is made into."""

    __slots__ = ("_body", "_head")

    def __init__(self, head: Head, body: Struct) -> None:
        self._head = head
        self._body = body

    @property
    def protocol(self) -> str:
        """HTTP."""
        return "HTTP"

    def header(self, name: str) -> str | None:
        """Return a header by its lower-case name."""
        return self._head.header(name)

    def field(self, name: str) -> Parameter | None:
        """Return a field of the body, such as `user`; None where it is not set, or neither text nor a number."""
        value = getattr(self._body, name) if name in self._body.__struct_fields__ else None
        return value if isinstance(value, str | int | float) else None
