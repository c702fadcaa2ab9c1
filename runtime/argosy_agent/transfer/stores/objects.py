"""Buckets of objects, through obstore: `s3://bucket/prefix`, `gs://bucket/prefix`, and Azure's `az://container/prefix`
and `abfss://container@account.dfs.core.windows.net/prefix`.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import obstore
from obstore.exceptions import BaseError

from argosy_agent.transfer.errors import ChangedError, StorageError

from .answers import nothing_there
from .buckets import bucket, root_in_bucket, translated
from .settings import Settings
from .source import Source, StoredFile, safe_name, strong, without_markers

CHUNK = 2**18
"""What is lost of a part that is cut is less than this many bytes."""


class ObjectSource(Source):
    """The object, or all objects below the prefix, that a URI names."""

    def __init__(self, uri: str, settings: Settings) -> None:
        self._uri, self._root = uri, root_in_bucket(uri)
        self._store = bucket(uri, settings)

    def files(self) -> list[StoredFile]:
        try:
            metas = [meta for page in obstore.list(self._store, self._root or None) for meta in page]
            if not metas:
                metas = [obstore.head(self._store, self._root)] if self._root else []
        except (BaseError, OSError, ValueError) as error:
            raise self._translated(error) from error
        files = [self._file(meta) for meta in metas if meta["path"] != self._root or len(metas) == 1]
        if not (files := without_markers(files)):
            raise nothing_there(self._uri)
        return files

    def read(self, file: StoredFile, start: int, end: int | None) -> Iterator[bytes]:
        assert end is not None  # the size of an object is always known
        try:
            result = obstore.get(self._store, file.path, options={"range": (start, end)})
            if not _same(result.meta, file):
                raise ChangedError(f"{self._uri}: {file.name} changed while it was read")
            yield from map(bytes, result.stream(CHUNK))
        except FileNotFoundError as error:
            raise ChangedError(f"{self._uri}: {file.name} went away while it was read") from error
        except (BaseError, OSError) as error:
            raise self._translated(error) from error

    def _file(self, meta: Any) -> StoredFile:
        below = meta["path"][len(self._root) :] if meta["path"] != self._root else meta["path"].rpartition("/")[2]
        return StoredFile(safe_name(below), meta["size"], mark_of(meta), meta["path"], etag=strong(meta.get("e_tag")))

    def _translated(self, error: BaseException) -> StorageError:
        return translated(self._uri, error)


def mark_of(meta: Any) -> str:
    """Return what changes with an object's content: its ETag, where it has one, and its time in seconds."""
    changed: datetime = meta["last_modified"]
    return f"{meta.get('e_tag') or ''} {changed.replace(microsecond=0).timestamp():.0f}"


def _same(meta: Any, file: StoredFile) -> bool:
    """Return whether an answer is of the listed file: a listing may write the ETag, or the time, in another way."""
    marks = zip(mark_of(meta).rsplit(" ", 1), file.mark.rsplit(" ", 1), strict=True)
    return meta["size"] == file.size and any(now == listed != "" for now, listed in marks)
