"""Buckets of objects, through obstore: big files in parts, small ones at once, and some only where there is none."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, NotSupportedError, PreconditionError

from argosy_agent.transfer.errors import FullError
from argosy_agent.transfer.stores.buckets import bucket, root_in_bucket, translated
from argosy_agent.transfer.stores.objects import mark_of
from argosy_agent.transfer.stores.settings import Settings
from argosy_agent.transfer.stores.source import StoredFile, without_markers

from .sink import WRITING, Sink, Stored, UnconditionalError, full_advice

if TYPE_CHECKING:
    from obstore.store import RetryConfig

PART = 16 * 2**20
"""The least bytes of a part; S3 accepts at most 10000 parts."""
PARTS = 9000
AT_ONCE = 4
SILENCE = timedelta(minutes=3)
"""A part that is sent for so long without an answer counts as cut."""
AGAIN: "RetryConfig" = {"max_retries": 4, "retry_timeout": timedelta(minutes=10)}
"""Of one part of a big file, which would otherwise start over."""
FULL = ("507", "XMinioStorageFull", "QuotaExceeded", "InsufficientStorage")
IGNORED = ("501", "NotImplemented", "InvalidArgument")
"""What clones answer that know no condition; others write, and say nothing."""


class BucketSink(Sink):
    """Objects below the prefix that `uri` names."""

    writers = 4

    def __init__(self, uri: str, settings: Settings) -> None:
        self._uri, self._root = uri, root_in_bucket(uri)
        self._store = bucket(uri, settings, SILENCE)
        self._parts = bucket(uri, settings, SILENCE, AGAIN)

    def write(self, name: str, source: Path, sent: Callable[[bytes], None]) -> None:
        size = source.stat().st_size
        part = max(PART, -(-size // PARTS))
        with source.open("rb") as reader, self._translating(name):
            if size <= part:
                body = reader.read()
                obstore.put(self._store, self._path(name), body, use_multipart=False)
                sent(body)
                return

            def pieces() -> Iterator[bytes]:
                while chunk := reader.read(part):
                    sent(chunk)
                    yield chunk

            obstore.put(self._parts, self._path(name), pieces(), chunk_size=part, max_concurrency=AT_ONCE)

    def create(self, name: str, body: bytes) -> bool:
        with self._translating(name):
            try:
                obstore.put(self._store, self._path(name), body, mode="create", use_multipart=False)
            except (AlreadyExistsError, PreconditionError):
                return False
            except (BaseError, OSError) as error:
                if isinstance(error, NotSupportedError) or _says(error, IGNORED):
                    raise UnconditionalError(f"{self._uri}: the store knows no conditional put") from error
                raise
        return True

    def replace(self, name: str, body: bytes) -> None:
        with self._translating(name):
            obstore.put(self._store, self._path(name), body, use_multipart=False)

    def read(self, name: str) -> bytes | None:
        with self._translating(name):
            try:
                return bytes(obstore.get(self._store, self._path(name)).bytes())
            except FileNotFoundError as error:
                if "NoSuchBucket" in str(error):
                    raise
                return None

    def chunks(self, file: str) -> Iterator[bytes]:
        with self._translating(file):
            for chunk in obstore.get(self._store, self._path(file)).stream():
                yield bytes(chunk)

    def files(self, prefix: str) -> list[Stored]:
        root = self._path(prefix)
        with self._translating(prefix):
            metas = [meta for page in obstore.list(self._store, root or None) for meta in page]
        times = {meta["path"]: meta["last_modified"].timestamp() for meta in metas}
        listed = [
            StoredFile(meta["path"][len(root) :].lstrip("/"), meta["size"], mark_of(meta), meta["path"])
            for meta in metas
            if meta["path"] != root
        ]
        return [Stored(file.name, file.size or 0, file.mark, times[file.path]) for file in without_markers(listed)]

    def folders(self, prefix: str = "") -> list[str]:
        root = self._path(prefix)
        with self._translating(prefix):
            prefixes = obstore.list_with_delimiter(self._store, root or None)["common_prefixes"]
        return sorted(path.rstrip("/").rpartition("/")[2] for path in prefixes)

    def remove(self, prefix: str) -> None:
        root = self._path(prefix)
        with self._translating(prefix):
            metas = [meta["path"] for page in obstore.list(self._store, root) for meta in page]
            for path in [*metas, root]:
                self._delete(path)

    def _delete(self, path: str) -> None:
        try:
            obstore.delete(self._store, path)
        except FileNotFoundError as error:
            if "NoSuchBucket" in str(error):
                raise

    def _path(self, name: str) -> str:
        return "/".join(filter(None, (self._root, name)))

    @contextmanager
    def _translating(self, name: str) -> Iterator[None]:
        try:
            yield
        except (BaseError, OSError) as error:
            uri = f"{self._uri.rstrip('/')}/{name}"
            if _says(error, FULL):
                raise FullError(f"{uri}: no more goes in there: {full_advice(uri)}") from error
            raise translated(uri, error, WRITING) from error


def _says(error: BaseException, words: tuple[str, ...]) -> bool:
    """Return whether a server's answer has one of these statuses or codes."""
    text = str(error)
    return any(f"status code: {word} " in text or f"<Code>{word}</Code>" in text for word in words)
