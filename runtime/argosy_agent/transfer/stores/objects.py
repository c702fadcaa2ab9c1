"""Buckets of objects, through obstore: `s3://bucket/prefix`, `gs://bucket/prefix`, and Azure's `az://container/prefix`
and `abfss://container@account.dfs.core.windows.net/prefix`.

Credentials are obstore's own: environment variables (those of the storage Secret), the service account of a Pod
(web identity, Pod identity, workload identity), the machine's. For S3 also a profile of the shared file, as the
AWS tools keep it on a laptop. A model's own Secret stands alone: what it says is handed over, and the environment's
credentials for the same storage do not count. obstore's retries are off: `flow` retries everything alike.
"""

import configparser
import os
import re
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, unquote, urlsplit

import obstore
from obstore.exceptions import BaseError
from obstore.store import AzureStore, GCSStore, S3Store

from argosy_agent.transfer.errors import ChangedError, StorageError, TransientError

from .answers import RIGHTS, answered, nothing_there
from .settings import Settings
from .source import Source, StoredFile, safe_name, without_markers

if TYPE_CHECKING:
    from obstore.store import RetryConfig, S3Credential

CHUNK = 2**18
"""What is lost of a part that is cut is less than this many bytes."""
STATUS = re.compile(r"status code: (\d{3})")
SAID = re.compile(r"<Code>(?P<code>[^<]*)</Code>.*?<Message>(?P<message>[^<]*)</Message>", re.DOTALL)
METADATA = re.compile(r"169\.254\.169\.254|metadata\.google\.internal")


class ObjectSource(Source):
    """The object, or all objects below the prefix, that a URI names."""

    def __init__(self, uri: str, settings: Settings) -> None:
        parts = urlsplit(uri)
        self._uri, self._root = uri, unquote(parts.path).strip("/")
        try:
            self._store = _STORES[parts.scheme](parts, settings)
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
            rights = RIGHTS[self._uri.partition(":")[0]]
            return StorageError(f"{self._uri}: no credentials are set and this machine offers none: {rights}")
        if "incorrectly configured region" in text:
            return StorageError(f"{self._uri}: the bucket is in another region; set AWS_REGION in the storage Secret")
        status = STATUS.search(text)
        if status is None:
            return TransientError(f"{self._uri}: {_first_line(error)}")
        said = SAID.search(text)
        return answered(self._uri, int(status[1]), f"{said['code']}: {said['message']}" if said else "")


def _s3(parts: SplitResult, settings: Settings) -> S3Store:
    endpoint = settings.first("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL").rstrip("/")
    given = _s3_alone(settings) if settings.alone else dict(_profile())
    if endpoint:
        given["endpoint"] = endpoint
    return S3Store(parts.netloc, client_options=_client(endpoint), retry_config=_ONCE, **given)


def _s3_alone(settings: Settings) -> dict[str, Any]:
    region = settings.first("AWS_REGION", "AWS_DEFAULT_REGION") or "us-east-1"
    keys: S3Credential = {
        "access_key_id": settings.first("AWS_ACCESS_KEY_ID"),
        "secret_access_key": settings.first("AWS_SECRET_ACCESS_KEY"),
        "token": settings.first("AWS_SESSION_TOKEN") or None,
        "expires_at": None,
    }
    given: dict[str, Any] = {"region": region, "endpoint": f"https://s3.{region}.amazonaws.com"}
    given["skip_signature"] = settings.first("AWS_SKIP_SIGNATURE").lower() == "true"
    return {**given, "credential_provider": lambda: keys} if keys["access_key_id"] else given


def _gcs(parts: SplitResult, settings: Settings) -> GCSStore:
    endpoint = settings.first("GOOGLE_BASE_URL", "STORAGE_EMULATOR_HOST").rstrip("/")
    given: dict[str, Any] = {"base_url": endpoint} if endpoint else {}
    if settings.alone:
        given["skip_signature"] = settings.first("GOOGLE_SKIP_SIGNATURE").lower() == "true"
        if account := settings.file("GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_SERVICE_ACCOUNT"):
            given["service_account"] = account
    return GCSStore(parts.netloc, client_options=_client(endpoint), retry_config=_ONCE, **given)


def _azure(parts: SplitResult, settings: Settings) -> AzureStore:
    container, _, host = parts.netloc.rpartition("@")
    account = host.partition(".")[0] if container else settings.first("AZURE_STORAGE_ACCOUNT_NAME")
    if not account:
        raise ValueError(
            "no storage account is named: set AZURE_STORAGE_ACCOUNT_NAME in the storage Secret, "
            "or write abfss://container@account.dfs.core.windows.net/path"
        )
    endpoint = settings.first("AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT").rstrip("/")
    given: dict[str, Any] = {"account_name": account, **({"endpoint": endpoint} if endpoint else {})}
    if settings.alone:
        given |= _azure_alone(settings)
    return AzureStore(container or host, client_options=_client(endpoint), retry_config=_ONCE, **given)


def _azure_alone(settings: Settings) -> dict[str, Any]:
    given: dict[str, Any] = {"skip_signature": settings.first("AZURE_SKIP_SIGNATURE").lower() == "true"}
    if key := settings.first("AZURE_STORAGE_ACCOUNT_KEY"):
        given["credential_provider"] = lambda: {"access_key": key, "expires_at": None}
    elif token := settings.first("AZURE_STORAGE_SAS_TOKEN", "AZURE_STORAGE_SAS_KEY"):
        given["credential_provider"] = lambda: {"sas_token": token, "expires_at": None}
    names = {"AZURE_TENANT_ID": "tenant_id", "AZURE_CLIENT_ID": "client_id", "AZURE_CLIENT_SECRET": "client_secret"}
    return {**given, **{key: value for name, key in names.items() if (value := settings.first(name))}}


_ONCE: "RetryConfig" = {"max_retries": 0}
_STORES: dict[str, Callable[[SplitResult, Settings], S3Store | GCSStore | AzureStore]] = {
    "s3": _s3,
    "gs": _gcs,
    "az": _azure,
    "abfss": _azure,
}


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
