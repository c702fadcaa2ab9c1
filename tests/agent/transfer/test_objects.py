"""Buckets: a real S3 server (moto), one that cuts and refuses, and ones that speak Google's and Azure's XML."""

import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from tests.agent.sites import QUICK
from tests.peers.s3 import S3

from argosy_agent.cache.storage import Storage
from argosy_agent.transfer.errors import DigestMismatchError, StorageError
from argosy_agent.transfer.flow import Retry
from argosy_agent.transfer.stores import settings

BODY = bytes(range(256)) * 40


@pytest.fixture
def bucket(s3: S3, monkeypatch: pytest.MonkeyPatch) -> S3:
    """Return the S3 server with an empty bucket `models`, and set the environment that a storage Secret would bring."""
    environment(monkeypatch, s3.url)
    s3.reset()
    s3.create_bucket("models")
    return s3


def environment(monkeypatch: pytest.MonkeyPatch, endpoint: str) -> None:
    """Set what a storage Secret brings for S3."""
    values = {"ACCESS_KEY_ID": "key", "SECRET_ACCESS_KEY": "secret", "REGION": "us-east-1", "ENDPOINT_URL": endpoint}
    for name, value in values.items():
        monkeypatch.setenv(f"AWS_{name}", value)


def put(bucket: S3, **files: bytes) -> None:
    """Put objects; a double underscore in a key is a slash."""
    for key, body in files.items():
        bucket.put("models", key.replace("__", "/"), body)


def listing(copy: Path) -> dict[str, bytes]:
    """Return every file of a copy."""
    return {str(path.relative_to(copy)): path.read_bytes() for path in copy.rglob("*") if path.is_file()}


def test_a_prefix_with_many_objects(bucket: S3, storage: Storage) -> None:
    put(bucket, m__config=b"{}", m__sub__weights=BODY, mother=b"no", **{f"m__shards__{n}": b"x" * n for n in range(30)})
    bucket.put("models", "m/", b"")
    bucket.put("models", "m/sub/", b"")
    bucket.put("models", "m/sub/a b%20+c", b"odd")
    result = listing(storage.fetch("s3://models/m"))
    assert result["sub/weights"] == BODY
    assert result["sub/a b%20+c"] == b"odd"
    assert len(result) == 33


def test_one_object(bucket: S3, storage: Storage) -> None:
    put(bucket, m__model=BODY)
    assert listing(storage.fetch("s3://models/m/model")) == {"model": BODY}


def test_nothing_there(bucket: S3, storage: Storage) -> None:
    with pytest.raises(StorageError, match=r"s3://models/m: .*404 Not Found.*correct spec.storageUri"):
        storage.fetch("s3://models/m")
    with pytest.raises(StorageError, match=r"s3://nothing/m: the server answered 404"):
        storage.fetch("s3://nothing/m")


def test_cut_connections_are_taken_up(
    bucket: S3,
    cache: Path,
    proxied: Callable[[int], Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    body = BODY * 200
    put(bucket, m__model=body)
    proxy = proxied(bucket.port)
    environment(monkeypatch, f"http://127.0.0.1:{proxy.port}")
    proxy.cuts = [100, 700_000, 10**6, 600_000, 500_000]
    copy = Storage(cache, part=600_000).fetch("s3://models/m/model")
    assert listing(copy) == {"model": body}
    assert proxy.cuts == []


def test_another_process_goes_on(bucket: S3, cache: Path) -> None:
    put(bucket, m__model=BODY * 10, m__other=b"y")
    first = Storage(cache, part=10_000)
    with pytest.raises(StorageError, match="stopped"):
        first.fetch("s3://models/m", progress=lambda done, total: first.stop() if done > 50_000 else None)
    reported: list[int] = []
    copy = Storage(cache, part=10_000).fetch("s3://models/m", progress=lambda done, total: reported.append(done))
    assert listing(copy) == {"model": BODY * 10, "other": b"y"}
    assert reported[0] >= 50_000


def test_an_object_that_changed_starts_afresh(bucket: S3, cache: Path) -> None:
    put(bucket, m__model=BODY * 10)
    first = Storage(cache, part=10_000)
    with pytest.raises(StorageError, match="stopped"):
        first.fetch("s3://models/m", progress=lambda done, total: first.stop() if done > 50_000 else None)
    put(bucket, m__model=BODY[::-1] * 10)
    assert listing(Storage(cache, part=10_000).fetch("s3://models/m")) == {"model": BODY[::-1] * 10}


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (403, r"403 Forbidden \(Why: because\): the Secret of spec.storage.secretName .*needs s3:ListBucket"),
        (404, r"404 Not Found \(Why: because\): nothing is there"),
        (500, r"500 Internal Server Error \(Why: because\), 4 times in a row"),
    ],
)
def test_refusals(site: Any, storage: Storage, monkeypatch: pytest.MonkeyPatch, status: int, words: str) -> None:
    environment(monkeypatch, site.url)
    site.refused = {"/models": status}
    with pytest.raises(StorageError, match=f"s3://models/m: the server answered {words}"):
        storage.fetch("s3://models/m")
    assert len(site.requests) == (4 if status == 500 else 1)


def test_errors_of_the_server_pass(bucket: S3, site: Any, storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    google(site, monkeypatch)
    site.statuses = [500, 503, 429]
    assert listing(storage.fetch("gs://models/m")) == {"config": b"{}", "sub/weights": BODY}


def google(site: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Serve a bucket `models` of two objects below m/, by Google's XML."""
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", site.url)
    monkeypatch.setenv("GOOGLE_SKIP_SIGNATURE", "true")
    site.files = {"/models/m/config": b"{}", "/models/m/sub/weights": BODY}
    contents = "".join(
        f"<Contents><Key>{path.removeprefix('/models/')}</Key><Size>{len(body)}</Size><ETag>&quot;other&quot;</ETag>"
        "<LastModified>2015-10-21T07:28:00.123Z</LastModified></Contents>"
        for path, body in site.files.items()
    )
    body = f"<?xml version='1.0'?><ListBucketResult>{contents}</ListBucketResult>".encode()
    site.answers = {"/models": (200, {"Content-Type": "application/xml"}, body)}


def test_google(site: Any, storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    google(site, monkeypatch)
    site.cuts = [9999, 500, 0]
    assert listing(storage.fetch("gs://models/m")) == {"config": b"{}", "sub/weights": BODY}
    site.refused = {"/models": 403}
    with pytest.raises(StorageError, match=r"gs://models/n: the server answered 403 .*storage.objects.list"):
        storage.fetch("gs://models/n")


def test_a_service_account_of_google(
    site: Any, storage: Storage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    google(site, monkeypatch)
    monkeypatch.delenv("GOOGLE_SKIP_SIGNATURE")
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()
    account = {"type": "service_account", "client_email": "me@x", "private_key_id": "1", "private_key": pem}
    (tmp_path / "key.json").write_text(json.dumps(account))
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "key.json"))
    assert listing(storage.fetch("gs://models/m")) == {"config": b"{}", "sub/weights": BODY}
    sent = [{name.lower(): value for name, value in headers.items()} for headers in site.headers]
    assert all(headers["authorization"].startswith("Bearer ") for headers in sent)


def test_a_profile_of_the_shared_file(
    bucket: S3, storage: Storage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(bucket, m=BODY)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    (tmp_path / "credentials").write_text("[mine]\naws_access_key_id = a\naws_secret_access_key = b\n")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_PROFILE", "mine")
    assert listing(storage.fetch("s3://models/m")) == {"m": BODY}


def azure(site: Any, container: str = "models") -> None:
    """Serve a container of two blobs below m/, by Azure's XML."""
    site.files = {f"/{container}/m/config": b"{}", f"/{container}/m/sub/weights": BODY}
    blobs = "".join(
        f"<Blob><Name>{path.removeprefix(f'/{container}/')}</Name><Properties>"
        "<Last-Modified>Wed, 21 Oct 2015 07:28:00 GMT</Last-Modified><Etag>other</Etag>"
        f"<Content-Length>{len(body)}</Content-Length><BlobType>BlockBlob</BlobType><Content-Type>text/plain</Content-Type></Properties></Blob>"
        for path, body in site.files.items()
    )
    body = f"<?xml version='1.0'?><EnumerationResults><Blobs>{blobs}</Blobs><NextMarker/></EnumerationResults>".encode()
    site.answers = {f"/{container}": (200, {"Content-Type": "application/xml"}, body)}


KEY = "a2V5"


@pytest.mark.parametrize("uri", ["az://models/m", "abfss://models@account.dfs.core.windows.net/m"])
def test_azure(site: Any, storage: Storage, monkeypatch: pytest.MonkeyPatch, uri: str) -> None:
    azure(site)
    monkeypatch.setenv("AZURE_STORAGE_ENDPOINT", site.url)
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", "account")
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", KEY)
    site.cuts = [9999, 500, 0]
    assert listing(storage.fetch(uri)) == {"config": b"{}", "sub/weights": BODY}
    assert all(authorization.startswith("SharedKey account:") for authorization in authorizations(site))
    site.refused = {"/models": 403}
    with pytest.raises(StorageError, match=r"the server answered 403 .*AZURE_STORAGE_ACCOUNT_KEY"):
        storage.fetch(f"{uri}/n")


def test_azure_needs_an_account(storage: Storage) -> None:
    with pytest.raises(StorageError, match=r"set AZURE_STORAGE_ACCOUNT_NAME in the storage Secret, or write abfss://"):
        storage.fetch("az://models/m")


def authorizations(site: Any) -> list[str]:
    """Return the authorization of each request."""
    sent = [{name.lower(): value for name, value in headers.items()} for headers in site.headers]
    return [headers.get("authorization", "") for headers in sent]


def secret(folder: Path, **values: str) -> None:
    """Write a Secret as the kubelet mounts it: each key a link into a hidden folder."""
    hidden = folder / "..data"
    hidden.mkdir(parents=True)
    for name, value in values.items():
        (hidden / name).write_text(value)
        (folder / name).symlink_to(hidden / name)


def test_a_models_own_secret_stands_alone(
    site: Any, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment(monkeypatch, "http://127.0.0.1:1")
    monkeypatch.setenv("AWS_SESSION_TOKEN", "of the pool")
    google(site, monkeypatch)  # the same XML as S3's
    values = {"AWS_ACCESS_KEY_ID": "mine", "AWS_SECRET_ACCESS_KEY": "s", "AWS_REGION": "eu-west-3"}
    secret(tmp_path / "named" / "team", **values, AWS_ENDPOINT_URL=f"{site.url}\n")
    storage = Storage(cache, named_secrets=tmp_path / "named")
    assert listing(storage.fetch("s3://models/m", secret="team")) == {"config": b"{}", "sub/weights": BODY}
    assert all(
        "Credential=mine/" in authorization and "/eu-west-3/" in authorization for authorization in authorizations(site)
    )
    assert not any("of the pool" in headers.values() for headers in site.headers)


def rotated(folder: Path, **values: str) -> None:
    """Replace the Secret's keys as the kubelet does: the hidden folder is replaced in one step."""
    for link in folder.iterdir():
        if link.is_symlink():
            link.unlink()
    (folder / "..data").rename(folder / "..former")
    secret(folder, **values)
    shutil.rmtree(folder / "..former")


def test_a_secret_that_is_rotated_is_used_from_the_next_fetch_on(
    site: Any, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    google(site, monkeypatch)  # the same XML as S3's
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_ENDPOINT_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(settings, "_OF_PROCESS", settings.Variables(os.environ))
    now = ["old"]
    refused = 403, {}, b"<Error><Code>InvalidAccessKeyId</Code><Message>it is gone</Message></Error>"
    site.guard = lambda path, headers: None if f"Credential={now[0]}/" in headers["Authorization"] else refused
    values = {"AWS_SECRET_ACCESS_KEY": "s", "AWS_REGION": "eu-west-3", "AWS_ENDPOINT_URL": site.url}
    folder = tmp_path / "secrets"
    secret(folder, AWS_ACCESS_KEY_ID="old", AWS_SESSION_TOKEN="passing", **values)
    storage = Storage(cache, secrets=folder, retry=QUICK)
    assert listing(storage.fetch("s3://models/m")) == {"config": b"{}", "sub/weights": BODY}
    now[0] = "new"
    with pytest.raises(StorageError, match="InvalidAccessKeyId"):
        storage.fetch("s3://models/m", "sha256:" + "0" * 64)
    rotated(folder, AWS_ACCESS_KEY_ID="new", **values)
    site.headers.clear()
    with pytest.raises(DigestMismatchError):
        storage.fetch("s3://models/m", "sha256:" + "0" * 64)
    assert not any("passing" in headers.values() for headers in site.headers)
    rotated(folder)
    storage._settings("")
    assert "AWS_ACCESS_KEY_ID" not in os.environ


def test_what_a_process_was_started_with_stands_before_the_secret(tmp_path: Path) -> None:
    environment = {"AWS_REGION": "of the container"}
    variables = settings.Variables(environment)
    secret(tmp_path / "s", AWS_REGION="of the secret", HF_TOKEN="first\n", **{"key.json": "{}"})
    variables.bring(tmp_path / "s")
    assert environment == {"AWS_REGION": "of the container", "HF_TOKEN": "first"}
    rotated(tmp_path / "s", HF_TOKEN="second")
    variables.bring(tmp_path / "s")
    assert environment == {"AWS_REGION": "of the container", "HF_TOKEN": "second"}
    variables.bring(tmp_path / "nowhere")
    assert environment == {"AWS_REGION": "of the container"}


def test_azure_and_google_by_a_models_own_secret(
    site: Any, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", KEY)
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", "other")
    azure(site)
    token = "sv=2024-01-01&sig=mine"
    named = {"AZURE_STORAGE_ACCOUNT_NAME": "account", "AZURE_STORAGE_SAS_TOKEN": token}
    secret(tmp_path / "team", AZURE_STORAGE_ENDPOINT=site.url, **named)
    storage = Storage(cache, named_secrets=tmp_path)
    assert listing(storage.fetch("az://models/m", secret="team")) == {"config": b"{}", "sub/weights": BODY}
    assert set(authorizations(site)) == {""}
    assert all("sig=mine" in path for path, _ in site.requests)
    google(site, monkeypatch)
    monkeypatch.delenv("GOOGLE_SKIP_SIGNATURE")
    monkeypatch.delenv("STORAGE_EMULATOR_HOST")
    secret(tmp_path / "public", GOOGLE_BASE_URL=site.url, GOOGLE_SKIP_SIGNATURE="true")
    assert listing(storage.fetch("gs://models/m", secret="public")) == {"config": b"{}", "sub/weights": BODY}


def test_a_secret_that_is_not_there_is_reported(cache: Path, tmp_path: Path) -> None:
    storage = Storage(cache, named_secrets=tmp_path)
    (tmp_path / "empty").mkdir()
    for name in ("team", "empty"):
        with pytest.raises(
            StorageError, match=f"the Secret {name} of spec.storage.secretName is not there, or is empty"
        ):
            storage.fetch("s3://models/m", secret=name)


@pytest.mark.parametrize("key", ["m/sub//notes", "m/./notes", "m/sub/../x"])
def test_a_key_that_is_no_path_is_quoted_and_final(bucket: S3, cache: Path, key: str) -> None:
    """Were it tried again, the wait of an hour would never end."""
    put(bucket, m__model=BODY)
    bucket.put("models", key, b"odd")
    storage = Storage(cache, retry=Retry(tries=9, first_s=3600, most_s=3600))
    with pytest.raises(StorageError, match=rf"the key '{re.escape(key)}' has //, /\./ or /\.\./ in it"):
        storage.fetch("s3://models/m")


@pytest.mark.parametrize("uri", ["s3://models/add//1", "s3://models/add/./1", "s3://models/a/../1"])
def test_a_uri_that_is_no_path_is_final(bucket: S3, storage: Storage, uri: str) -> None:
    with pytest.raises(StorageError, match=r"has //, /\./ or /\.\./ in it, and cannot be a file's path"):
        storage.fetch(uri)
