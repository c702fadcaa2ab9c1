"""One file of a web server: `http:` and `https:` URIs. Its links are not followed."""

from collections.abc import Iterator
from pathlib import PurePosixPath
from urllib.parse import unquote, urlsplit

from .ranged import RangedClient
from .source import Source, StoredFile, safe_name


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
