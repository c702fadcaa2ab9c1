"""The static table of RFC 7541, appendix A, and the dynamic one of a connection."""

from collections import deque
from typing import Final

from argosy_runtime.http2.errors import ErrorCode, PeerError

Field = tuple[bytes, bytes]

ENTRY_OVERHEAD: Final = 32
DEFAULT_SIZE: Final = 4096

_STATIC_TEXT: Final = """\
:authority
:method=GET
:method=POST
:path=/
:path=/index.html
:scheme=http
:scheme=https
:status=200
:status=204
:status=206
:status=304
:status=400
:status=404
:status=500
accept-charset
accept-encoding=gzip, deflate
accept-language
accept-ranges
accept
access-control-allow-origin
age
allow
authorization
cache-control
content-disposition
content-encoding
content-language
content-length
content-location
content-range
content-type
cookie
date
etag
expect
expires
from
host
if-match
if-modified-since
if-none-match
if-range
if-unmodified-since
last-modified
link
location
max-forwards
proxy-authenticate
proxy-authorization
range
referer
refresh
retry-after
server
set-cookie
strict-transport-security
transfer-encoding
user-agent
vary
via
www-authenticate"""


def _field(line: str) -> Field:
    name, _, value = line.encode().partition(b"=")
    return name, value


STATIC: Final[tuple[Field, ...]] = tuple(_field(line) for line in _STATIC_TEXT.split("\n"))
"""Index 1 of the table is the first here."""


def size_of(field: Field) -> int:
    """Return what a field takes of a table or a header list, in bytes."""
    return len(field[0]) + len(field[1]) + ENTRY_OVERHEAD


class DynamicTable:
    """The fields that a peer had stored, the newest first. `changes` grows whenever their indexes change."""

    __slots__ = ("_entries", "_limit", "_maximum", "_size", "changes")

    def __init__(self, maximum: int = DEFAULT_SIZE) -> None:
        self.changes = 0
        self._entries: deque[Field] = deque()
        self._size = 0
        self._limit = maximum
        self._maximum = maximum

    def field(self, index: int) -> Field:
        """Return the field of an index into both tables. Raises PeerError where there is none."""
        if 0 < index <= len(STATIC):
            return STATIC[index - 1]
        position = index - len(STATIC) - 1
        if not 0 <= position < len(self._entries):
            raise PeerError(ErrorCode.COMPRESSION_ERROR, f"no header field of index {index}")
        return self._entries[position]

    def insert(self, field: Field) -> None:
        """Add a field, and evict the oldest for it; one larger than the table empties it."""
        self.changes += 1
        self._entries.appendleft(field)
        self._size += size_of(field)
        self._shrink()

    def resize(self, limit: int) -> None:
        """Use at most `limit` bytes. Raises PeerError where that is more than was allowed."""
        if limit > self._maximum:
            raise PeerError(ErrorCode.COMPRESSION_ERROR, "a dynamic table larger than allowed")
        self.changes += 1
        self._limit = limit
        self._shrink()

    def _shrink(self) -> None:
        while self._size > self._limit:
            self._size -= size_of(self._entries.pop())
