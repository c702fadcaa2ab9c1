"""Buckets of objects: `s3://bucket/prefix` and `gs://bucket/prefix`, through obstore.

Credentials are obstore's own: environment variables (those of the storage Secret), the service account of a Pod
(web identity, Pod identity, workload identity), the machine's. For S3 also a profile of the shared file, as the
AWS tools keep it on a laptop. obstore's retries are off: `flow` retries everything alike.
"""

import configparser
import os
import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import obstore
from obstore.exceptions import BaseError
from obstore.store import GCSStore, S3Store

from .answers import RIGHTS, answered, nothing_there
from .errors import ChangedError, StorageError, TransientError
from .source import Source, StoredFile, safe_name, without_markers

CHUNK = 2**18
"""What is lost of a part that is cut is less than this many bytes."""
STATUS = re.compile(r"status code: (\d{3})")
SAID = re.compile(r"<Code>(?P<code>[^<]*)</Code>.*?<Message>(?P<message>[^<]*)</Message>", re.DOTALL)
METADATA = re.compile(r"169\.254\.169\.254|metadata\.google\.internal")


class ObjectSource(Source):
    """The object, or all objects below the prefix, that a URI names."""

    def __init__(self, uri: str) -> None:
        parts = urlsplit(uri)
        self._uri, self._root = uri, unquote(parts.path).strip("/")
        try:
            self._store = _s3(parts.netloc) if parts.scheme == "s3" else _gcs(parts.netloc)
        except (BaseError, ValueError, OSError) as error:
            raise StorageError(f"{uri}: {_first_line(error)}") from error

    def files(self) -> list[StoredFile]:
        try:
            metas = [meta for page in obstore.list(self._store, self._root or None) for meta in page]
            if not metas:
                metas = [obstore.head(self._store, self._root)] if self._root else []
        except (BaseError, OSError) as error:
            raise self._translated(error) from error
        found = [self._file(meta) for meta in metas if meta["path"] != self._root or len(metas) == 1]
        if not (files := without_markers(found)):
            raise nothing_there(self._uri)
        return files

    def read(self, file: StoredFile, start: int, end: int | None) -> Iterator[bytes]:
        assert end is not None  # the size of an object is always known
        try:
            result = obstore.get(self._store, file.place, options={"range": (start, end)})
            if not _same(result.meta, file):
                raise ChangedError(f"{self._uri}: {file.name} changed while it was read")
            yield from map(bytes, result.stream(CHUNK))
        except FileNotFoundError as error:
            raise ChangedError(f"{self._uri}: {file.name} went away while it was read") from error
        except (BaseError, OSError) as error:
            raise self._translated(error) from error

    def _file(self, meta: Any) -> StoredFile:
        below = meta["path"][len(self._root) :] if meta["path"] != self._root else meta["path"].rpartition("/")[2]
        return StoredFile(safe_name(below), meta["size"], _mark(meta), meta["path"])

    def _translated(self, error: BaseException) -> StorageError:
        text = str(error)
        if METADATA.search(text):
            return StorageError(
                f"{self._uri}: no credentials are set and this machine offers none: {RIGHTS[self._uri[:2]]}"
            )
        if "incorrectly configured region" in text:
            return StorageError(f"{self._uri}: the bucket is in another region; set AWS_REGION in the storage Secret")
        status = STATUS.search(text)
        if status is None:
            return TransientError(f"{self._uri}: {_first_line(error)}")
        said = SAID.search(text)
        return answered(self._uri, int(status[1]), f"{said['code']}: {said['message']}" if said else "")


def _s3(bucket: str) -> S3Store:
    settings: dict[str, Any] = dict(_profile())
    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL", "")
    if endpoint:
        settings["endpoint"] = endpoint.rstrip("/")
    return S3Store(bucket, client_options=_client(endpoint), retry_config={"max_retries": 0}, **settings)


def _gcs(bucket: str) -> GCSStore:
    endpoint = os.environ.get("GOOGLE_BASE_URL") or os.environ.get("STORAGE_EMULATOR_HOST", "")
    settings: dict[str, Any] = {"base_url": endpoint.rstrip("/")} if endpoint else {}
    return GCSStore(bucket, client_options=_client(endpoint), retry_config={"max_retries": 0}, **settings)


def _client(endpoint: str) -> Any:
    """A read that stands still ends; a long one does not. Plain HTTP is for endpoints that say so."""
    plain = endpoint.startswith("http://")
    return {
        "timeout": timedelta(days=1),
        "read_timeout": timedelta(seconds=30),
        **({"allow_http": True} if plain else {}),
    }


def _profile() -> dict[str, str]:
    """Keys of the AWS tools' shared file, where the environment has none."""
    if any(name in os.environ for name in ("AWS_ACCESS_KEY_ID", "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_SKIP_SIGNATURE")):
        return {}
    parser = configparser.RawConfigParser()
    parser.read(os.environ.get("AWS_SHARED_CREDENTIALS_FILE", Path.home() / ".aws" / "credentials"))
    profile = os.environ.get("AWS_PROFILE", "default")
    found = dict(parser[profile]) if parser.has_section(profile) else {}
    names = {"aws_access_key_id": "access_key_id", "aws_secret_access_key": "secret_access_key"}
    names["aws_session_token"] = "session_token"
    return {name: found[key] for key, name in names.items() if key in found}


def _mark(meta: Any) -> str:
    changed: datetime = meta["last_modified"]
    return f"{meta.get('e_tag') or ''} {changed.replace(microsecond=0).timestamp():.0f}"


def _same(meta: Any, file: StoredFile) -> bool:
    """Whether an answer is of the file that was listed: a listing may write the ETag, or the time, otherwise."""
    marks = zip(_mark(meta).rsplit(" ", 1), file.mark.rsplit(" ", 1), strict=True)
    return meta["size"] == file.size and any(now == listed != "" for now, listed in marks)


def _first_line(error: BaseException) -> str:
    return str(error).split("\n", 1)[0].split("Debug source", 1)[0].strip() or type(error).__name__
