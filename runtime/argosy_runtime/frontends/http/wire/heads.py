"""Heads of HTTP requests."""

from collections.abc import Callable, Iterator, Sequence
from typing import Final
from urllib.parse import urlsplit

import httptools

from .reply import Reply

MAX_HEAD_BYTES: Final = 1 << 16
_MOST_DIGITS: Final = 1000
# A body with this header may be longer than what is parsed at once.
_UNBOUNDED: Final = b"inference-header-content-length"


class Head:
    """The part of a request before its body. `headers` have lower-case names; of equal names the last counts. `written`
    has names and values as they came.

    `binary_type` begins the content type of binary answers, where it is not that of the V2 protocol.

    `reworded` is what a complete reply is turned into before it is sent, None for itself.

    `length` is the body's in bytes, unless it is `chunked`. `old` is HTTP/1.0. `unbounded`: a header says how long the
    JSON in the body is.
    """

    __slots__ = (
        "binary_type",
        "chunked",
        "expects",
        "headers",
        "keep_alive",
        "length",
        "method",
        "old",
        "only_head",
        "path",
        "reworded",
        "unbounded",
        "written",
    )

    def __init__(
        self,
        method: str,
        path: str,
        headers: dict[bytes, bytes],
        old: bool = False,
        keep_alive: bool = True,
        written: Sequence[tuple[bytes, bytes]] | None = None,
    ) -> None:
        self.method = method
        self.path = path
        self.headers = headers
        self.chunked = b"transfer-encoding" in headers
        self.length = 0 if self.chunked else _length(headers.get(b"content-length", b"0"))
        self.expects = headers.get(b"expect", b"").lower() == b"100-continue"
        self.old = old
        self.keep_alive = keep_alive
        self.only_head = method == "HEAD"
        self.unbounded = _UNBOUNDED in headers
        self.binary_type = ""
        self.reworded: Callable[[Reply], Reply] | None = None
        self.written = list(headers.items()) if written is None else written

    @property
    def protocol(self) -> str:
        """HTTP."""
        return "HTTP"

    def header(self, name: str) -> str | None:
        """Return a header by its lower-case name."""
        value = self.headers.get(name.encode())
        return None if value is None else value.decode("latin-1")

    def fields(self) -> Iterator[tuple[str, str]]:
        """Yield the names and values of all headers as the client wrote them."""
        for name, value in self.written:
            yield name.decode("latin-1"), _text(value)

    def field(self, name: str) -> None:
        """Return None: what a body has in the V2 protocol is the request's own."""


def _length(value: bytes) -> int:
    """Return a length that the parser has taken: with any number of zeros before it, of which Python reads not all."""
    return int(value if len(value) < _MOST_DIGITS else value.strip().lstrip(b"0") or b"0")


def _text(value: bytes) -> str:
    """Return a header's value: HTTP gives it no encoding, and what is no UTF-8 is Latin-1, as it was."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")


class _Reader:
    """The callbacks of the parser."""

    def __init__(self) -> None:
        self.url = b""
        self.headers: dict[bytes, bytes] = {}
        self.written: list[tuple[bytes, bytes]] = []
        self.parser = httptools.HttpRequestParser(self)
        self.parser.set_dangerous_leniencies(lenient_chunked_length=True)
        self.complete = False
        self.keep_alive = False

    def on_url(self, url: bytes) -> None:
        self.url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers[name.lower()] = value
        self.written.append((name, value))

    def on_headers_complete(self) -> None:
        self.complete = True
        # Later the parser has forgotten it, where no body follows.
        self.keep_alive = self.parser.should_keep_alive()

    def has_one_length(self) -> bool:
        """Return whether it is known where the body ends.

        Clients that make chunks by hand send a length, too, which does not count, and HTTP/1.0 has no chunks. Another
        reader in between may see another end, so that such a request is the last of its connection (RFC 9112, sections
        6.1 and 6.3).
        """
        coding = self.headers.get(b"transfer-encoding")
        if coding is None:
            return True
        if b"content-length" in self.headers or self.parser.get_http_version() != "1.1":
            self.keep_alive = False
        return coding.rpartition(b",")[2].strip().lower() == b"chunked"


def read_head(data: bytes) -> Head | None:
    """Parse a head, its empty last line included; return None where it is not HTTP."""
    reader = _Reader()
    parser = reader.parser
    try:
        parser.feed_data(data)
    except httptools.HttpParserUpgrade:
        # An offer to speak another protocol, which may be ignored.
        pass
    except httptools.HttpParserError:
        return None
    if not (reader.complete and reader.has_one_length()):
        return None
    path = _path(reader.url)
    if path is None:
        return None
    method = parser.get_method().decode("latin-1")
    old = parser.get_http_version() != "1.1"
    return Head(method, path, reader.headers, old, reader.keep_alive, reader.written)


def _path(url: bytes) -> str | None:
    """Return the path of a request's target; None where it is a URL that cannot be read."""
    text = url.decode("latin-1")
    if not text.startswith("/") and "://" in text:
        try:
            text = urlsplit(text).path or "/"
        except ValueError:
            # It has one bracket of an IPv6 address without the other.
            return None
    return text.partition("?")[0]


def may_be_head(begin: bytes) -> bool:
    """Return whether bytes without an empty line may be the beginning of a head."""
    return len(begin) <= MAX_HEAD_BYTES and begin[:1].isalpha() and b"\n\n" not in begin
