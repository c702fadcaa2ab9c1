"""HTTP as storages speak it: what a URL holds, and any range of it, over one client.

`http:` and `https:` URIs are one file each, whose links are not followed.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import PurePosixPath
from urllib.parse import unquote, urlsplit

import httpx

from argosy_agent.transfer.errors import ChangedError, StorageError, TransientError, shown

from .answers import answered, unreached
from .source import Source, StoredFile, safe_name, strong

TIMEOUT = httpx.Timeout(30.0)
"""Seconds without a byte after which a connection counts as cut; a whole download may take as long as it takes."""
ERROR_BODY = 300
"""How much of an error's body is repeated."""
PLAIN = {"Accept-Encoding": "identity"}
Headers = Callable[[], Mapping[str, str]]


class RangedClient:
    """Reads URLs on behalf of `uri`, which is what errors name. Thread-safe."""

    def __init__(self, uri: str, headers: Headers = dict) -> None:
        self._uri, self._headers = uri, headers
        self._client = httpx.Client(timeout=TIMEOUT, follow_redirects=True)

    def close(self) -> None:
        """Let connections go."""
        self._client.close()

    @contextmanager
    def get(self, url: str, headers: Mapping[str, str]) -> Iterator[httpx.Response]:
        """Yield a response that is being read, whatever its status. Raises TransientError, StorageError."""
        sent = {**PLAIN, **self._headers(), **headers}
        try:
            with self._client.stream("GET", url, headers=sent) as response:
                yield response
        except (httpx.TimeoutException, httpx.NetworkError, httpx.RemoteProtocolError) as error:
            raise unreached(self._uri, _words(error)) from error
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise StorageError(f"{shown(self._uri)}: {_words(error)}") from error

    def refused(self, response: httpx.Response) -> StorageError:
        """Return the error for a response that is none of those expected."""
        after = response.headers.get("Retry-After", "")
        return answered(
            self._uri, response.status_code, _error_text(response), float(after) if after.isdigit() else 0.0
        )

    def describe(self, url: str, name: str) -> StoredFile:
        """Return what stands at `url`. One byte is asked for, since not every server answers HEAD as it answers GET."""
        with self.get(url, {"Range": "bytes=0-0"}) as response:
            size, ranges = _size(response)
            if response.status_code not in (200, 206) and not (response.status_code == 416 and size == 0):
                raise self.refused(response)
            return StoredFile(name, size, _mark(response), url, ranges, strong(response.headers.get("ETag")))

    def ranges(self, url: str) -> bool:
        """Return whether parts of what stands at `url` can be had."""
        return self.describe(url, "").ranges

    def read(self, file: StoredFile, url: str, start: int, end: int | None, pinned: bool = False) -> Iterator[bytes]:
        """Yield the bytes of `file`, which stands at `url`, from `start` up to `end`.

        A `pinned` URL never changes its content; of any other raises ChangedError where it has.
        """
        headers = {"Range": f"bytes={start}-{end - 1}"} if file.ranges and end is not None else {}
        with self.get(url, headers) as response:
            if response.status_code in (412, 416):
                raise ChangedError(f"{shown(self._uri)} changed while it was read")
            if response.status_code != (206 if headers else 200):
                raise self._unexpected(response)
            if (not pinned and _mark(response) != file.mark) or (headers and _size(response)[0] != file.size):
                raise ChangedError(f"{shown(self._uri)} changed while it was read")
            yield from response.iter_bytes()

    def _unexpected(self, response: httpx.Response) -> StorageError:
        if response.is_success:
            return TransientError(f"{shown(self._uri)}: the server sent the whole file where a part was requested")
        return self.refused(response)


def _size(response: httpx.Response) -> tuple[int | None, bool]:
    """Return the bytes of the file, and whether ranges of it can be read."""
    encoded = response.headers.get("Content-Encoding", "identity") != "identity"
    _, slash, total = response.headers.get("Content-Range", "").partition("/")
    if slash and total.isdigit() and not encoded:
        return int(total), response.status_code == 206
    length = response.headers.get("Content-Length", "")
    return (int(length) if length.isdigit() and response.status_code == 200 and not encoded else None), False


def _mark(response: httpx.Response) -> str:
    """Return the mark that changes with the content: the ETag, or the time of the last change."""
    etag: str = response.headers.get("ETag", "")
    return etag or str(response.headers.get("Last-Modified", ""))


def _error_text(response: httpx.Response) -> str:
    """Return the beginning of an error's body, where it is text."""
    if "html" in response.headers.get("Content-Type", "html"):
        return ""
    try:
        return " ".join(response.read().decode("utf-8", "replace").split())[:ERROR_BODY]
    except httpx.HTTPError:
        return ""


def _words(error: Exception) -> str:
    return str(error) or {"ReadTimeout": "no byte came in time"}.get(type(error).__name__, type(error).__name__)


class WebSource(Source):
    """A URL. User and password in it become basic authentication."""

    def __init__(self, uri: str) -> None:
        self._uri = uri
        self._client = RangedClient(uri)

    def files(self) -> list[StoredFile]:
        name = PurePosixPath(unquote(urlsplit(self._uri).path)).name or "model"
        return [self._client.describe(self._uri, safe_name(name))]

    def read(self, file: StoredFile, start: int, end: int | None) -> Iterator[bytes]:
        return self._client.read(file, self._uri, start, end)

    def close(self) -> None:
        self._client.close()
