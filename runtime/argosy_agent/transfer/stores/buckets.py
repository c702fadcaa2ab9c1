"""Opening a bucket through obstore, with its credentials, and the meaning of its refusals.

Credentials are obstore's own: environment variables (those of the storage Secret), the service account of a Pod
(web identity, Pod identity, workload identity), the machine's. For S3 also a profile of the shared file, as the
AWS tools keep it on a laptop. A model's own Secret stands alone: what it says is handed over, and the environment's
credentials for the same storage do not count. obstore's retries are off: `flow` retries everything alike.
"""

import configparser
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, unquote, urlsplit

from obstore.exceptions import BaseError
from obstore.store import AzureStore, GCSStore, S3Store

from argosy_agent.transfer.errors import StorageError

from .answers import CERTIFICATE, READING, Purpose, answered, unreached
from .settings import Settings

if TYPE_CHECKING:
    from obstore.store import RetryConfig, S3Credential

Bucket = S3Store | GCSStore | AzureStore
SILENCE = timedelta(seconds=30)
"""A connection on which no byte comes for so long counts as cut."""
STATUS = re.compile(r"status code: (\d{3})")
ERROR_BODY = re.compile(r"<Code>(?P<code>[^<]*)</Code>.*?<Message>(?P<message>[^<]*)</Message>", re.DOTALL)
ONE_OF_MANY = re.compile(r"request failed for key .*?: (?P<message>.*) \(code: (?P<code>\w+)\)")
"""S3 and Azure are asked to remove objects in batches, and say of each object alone why it stays."""
BAD_KEY = re.compile(r'[Pp]ath "(?P<key>[^"]*)"[^"]*(?:empty path segment|illegal character sequence)')
METADATA = re.compile(r"169\.254\.169\.254|metadata\.google\.internal")


@dataclass(frozen=True, slots=True)
class _How:
    """The settings of every client."""

    silence: timedelta
    again: "RetryConfig | None"


def bucket(uri: str, settings: Settings, silence: timedelta = SILENCE, again: "RetryConfig | None" = None) -> Bucket:
    """Return the bucket that `uri` names; `again` is how often obstore itself tries, which is once.

    Raises StorageError where the bucket or the credentials are not named.
    """
    parts = urlsplit(uri)
    try:
        return _STORES[parts.scheme](parts, settings, _How(silence, again))
    except (BaseError, ValueError, OSError) as error:
        raise StorageError(f"{uri}: {first_line(error)}") from error


def root_in_bucket(uri: str) -> str:
    """Return the prefix that `uri` names, without slashes at its ends. Raises StorageError where no object can be
    there.
    """
    root = unquote(urlsplit(uri).path).strip("/")
    if root and not {"", ".", ".."}.isdisjoint(root.split("/")):
        raise unreadable_key(uri, root)
    return root


def unreadable_key(uri: str, key: str) -> StorageError:
    """Return the error for a key that is no path of a file."""
    return StorageError(
        f"{uri}: the key {key!r} has //, /./ or /../ in it, and cannot be a file's path: "
        "store that object under another key, or remove it"
    )


def translated(uri: str, error: BaseException, purpose: Purpose = READING) -> StorageError:
    """Return the StorageError of obstore's error about `uri`."""
    text = str(error)
    if METADATA.search(text):
        rights = purpose.rights[uri.partition(":")[0]]
        return StorageError(f"{uri}: no credentials are set and this machine offers none: {rights}")
    if "incorrectly configured region" in text:
        return StorageError(f"{uri}: the bucket is in another region; set AWS_REGION in the storage Secret")
    if one := ONE_OF_MANY.search(text):
        denied = one["code"] in ("AccessDenied", "403")
        return answered(uri, 403 if denied else 500, f"{one['code']}: {one['message']}", 0, purpose)
    if bad := BAD_KEY.search(text):
        return unreadable_key(uri, bad["key"])
    status = STATUS.search(text)
    if status is None:
        return unreached(uri, match[0] if (match := CERTIFICATE.search(text)) else first_line(error))
    details = ERROR_BODY.search(text)
    words = f"{details['code']}: {details['message']}" if details else ""
    return answered(uri, int(status[1]), words, purpose=purpose)


def first_line(error: BaseException) -> str:
    """Return what an error says, without what is for programmers."""
    return str(error).split("\n", 1)[0].split("Debug source", 1)[0].strip() or type(error).__name__


def _s3(parts: SplitResult, settings: Settings, how: _How) -> S3Store:
    endpoint = settings.first("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL").rstrip("/")
    options = _s3_alone(settings) if settings.alone else dict(_profile())
    if endpoint:
        options["endpoint"] = endpoint
    return S3Store(parts.netloc, **_client(endpoint, how), **options)


def _s3_alone(settings: Settings) -> dict[str, Any]:
    region = settings.first("AWS_REGION", "AWS_DEFAULT_REGION") or "us-east-1"
    keys: S3Credential = {
        "access_key_id": settings.first("AWS_ACCESS_KEY_ID"),
        "secret_access_key": settings.first("AWS_SECRET_ACCESS_KEY"),
        "token": settings.first("AWS_SESSION_TOKEN") or None,
        "expires_at": None,
    }
    options: dict[str, Any] = {"region": region, "endpoint": f"https://s3.{region}.amazonaws.com"}
    options["skip_signature"] = settings.first("AWS_SKIP_SIGNATURE").lower() == "true"
    return {**options, "credential_provider": lambda: keys} if keys["access_key_id"] else options


def _gcs(parts: SplitResult, settings: Settings, how: _How) -> GCSStore:
    endpoint = settings.first("GOOGLE_BASE_URL", "STORAGE_EMULATOR_HOST").rstrip("/")
    options: dict[str, Any] = {"base_url": endpoint} if endpoint else {}
    if settings.alone:
        options["skip_signature"] = settings.first("GOOGLE_SKIP_SIGNATURE").lower() == "true"
        if account := settings.file("GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_SERVICE_ACCOUNT"):
            options["service_account"] = account
    return GCSStore(parts.netloc, **_client(endpoint, how), **options)


def _azure(parts: SplitResult, settings: Settings, how: _How) -> AzureStore:
    container, _, host = parts.netloc.rpartition("@")
    account = host.partition(".")[0] if container else settings.first("AZURE_STORAGE_ACCOUNT_NAME")
    if not account:
        raise ValueError(
            "no storage account is named: set AZURE_STORAGE_ACCOUNT_NAME in the storage Secret, "
            "or write abfss://container@account.dfs.core.windows.net/path"
        )
    endpoint = settings.first("AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT").rstrip("/")
    options: dict[str, Any] = {"account_name": account, **({"endpoint": endpoint} if endpoint else {})}
    if settings.alone:
        options |= _azure_alone(settings)
    return AzureStore(container or host, **_client(endpoint, how), **options)


def _azure_alone(settings: Settings) -> dict[str, Any]:
    options: dict[str, Any] = {"skip_signature": settings.first("AZURE_SKIP_SIGNATURE").lower() == "true"}
    if key := settings.first("AZURE_STORAGE_ACCOUNT_KEY"):
        options["credential_provider"] = lambda: {"access_key": key, "expires_at": None}
    elif token := settings.first("AZURE_STORAGE_SAS_TOKEN", "AZURE_STORAGE_SAS_KEY"):
        options["credential_provider"] = lambda: {"sas_token": token, "expires_at": None}
    names = {"AZURE_TENANT_ID": "tenant_id", "AZURE_CLIENT_ID": "client_id", "AZURE_CLIENT_SECRET": "client_secret"}
    return {**options, **{key: value for name, key in names.items() if (value := settings.first(name))}}


_STORES: dict[str, Callable[[SplitResult, Settings, _How], Bucket]] = {
    "s3": _s3,
    "gs": _gcs,
    "az": _azure,
    "abfss": _azure,
}


def _client(endpoint: str, how: _How) -> dict[str, Any]:
    """Return the options of a client.

    A read that stands still ends; a long one does not. Plain HTTP is for endpoints that say so.
    """
    plain = endpoint.startswith("http://")
    options = {
        "timeout": timedelta(days=1),
        "read_timeout": how.silence,
        **({"allow_http": True} if plain else {}),
    }
    return {"client_options": options, "retry_config": how.again or {"max_retries": 0}}


def _profile() -> dict[str, str]:
    """Return the keys of the AWS tools' shared file, where the environment has none."""
    if any(name in os.environ for name in ("AWS_ACCESS_KEY_ID", "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_SKIP_SIGNATURE")):
        return {}
    parser = configparser.RawConfigParser()
    parser.read(os.environ.get("AWS_SHARED_CREDENTIALS_FILE", Path.home() / ".aws" / "credentials"))
    profile = os.environ.get("AWS_PROFILE", "default")
    entries = dict(parser[profile]) if parser.has_section(profile) else {}
    names = {"aws_access_key_id": "access_key_id", "aws_secret_access_key": "secret_access_key"}
    names["aws_session_token"] = "session_token"
    return {name: entries[key] for key, name in names.items() if key in entries}
