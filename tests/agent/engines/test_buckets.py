"""Buckets as S3's clones, Google and Azure speak: what is written comes back, and each refusal is reported in words."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from tests.peers.s3 import S3

from argosy_agent.cache.storage import Storage
from argosy_agent.engines.manifest import Manifest
from argosy_agent.engines.store import EngineStore
from argosy_agent.transfer.errors import FullError, StorageError
from argosy_agent.transfer.localfiles import local_files
from argosy_agent.transfer.sinks import bucket as bucket_sink

from .bucketserver import Bucket, serving
from .making import FILES, KEY, OTHER, listing, manifest, open_at, write

URIS = {
    "s3": "s3://fleet/engines",
    "gs": "gs://fleet/engines",
    "az": "az://fleet/engines",
    "abfss": "abfss://fleet@account.dfs.core.windows.net/engines",
}


@pytest.fixture(scope="module")
def account(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create a service account of Google's: without one nothing is written there."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    plain = serialization.NoEncryption()
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain).decode()
    path = tmp_path_factory.mktemp("google") / "key.json"
    path.write_text(
        json.dumps({"type": "service_account", "client_email": "me@x", "private_key_id": "1", "private_key": pem})
    )
    return path


@pytest.fixture
def cloud(account: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bucket]:
    """Yield an empty bucket, and set what a storage Secret would bring for it."""
    with serving(Bucket()) as bucket:
        values = {
            "AWS_ACCESS_KEY_ID": "key",
            "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": bucket.url,
            "STORAGE_EMULATOR_HOST": bucket.url,
            "GOOGLE_APPLICATION_CREDENTIALS": str(account),
            "AZURE_STORAGE_ENDPOINT": bucket.url,
            "AZURE_STORAGE_ACCOUNT_NAME": "account",
            "AZURE_STORAGE_ACCOUNT_KEY": "a2V5",
        }
        for name, value in values.items():
            monkeypatch.setenv(name, value)
        yield bucket


@pytest.fixture(params=list(URIS))
def uri(request: pytest.FixtureRequest) -> str:
    """Return a store's URI, one of each scheme."""
    return URIS[request.param]


def test_what_is_published_comes_back(cloud: Bucket, uri: str, engine: Path, tmp_path: Path, storage: Storage) -> None:
    store = open_at(uri, tmp_path)
    published = store.publish(KEY, engine, manifest())
    assert store.lookup(KEY) == published
    assert listing(storage.fetch(published.uri, published.digest)) == FILES
    assert [item.key for item in store.list()] == [KEY]
    assert not any(".conditional" in key for key in cloud.objects)
    store.remove(KEY)
    assert cloud.objects == {}


def test_big_files_go_in_parts(
    cloud: Bucket, uri: str, tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bucket_sink, "PART", 5 * 2**20)
    big = write(tmp_path / "big", {"weights": bytes(range(256)) * 2**16, "b": b"1"})
    published = open_at(uri, tmp_path).publish(KEY, big, manifest())
    assert listing(Storage(cache).fetch(published.uri, published.digest)) == listing(big)
    assert cloud.blocks == {}


@pytest.mark.parametrize("condition", ["ignored", "refused"])
def test_a_clone_without_conditions(
    cloud: Bucket, engine: Path, tmp_path: Path, condition: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Both have looked before either wrote: the later manifest stands, and no file goes that a manifest has named."""
    cloud.condition = condition
    store = open_at(URIS["s3"], tmp_path)
    mine = store.publish(KEY, engine, manifest())
    assert "only where there is none" in caplog.text
    assert store.lookup(KEY) == mine
    assert store.publish(KEY, write(tmp_path / "x", {"x": b"1"}), manifest()) == mine
    other = racing(store, tmp_path)
    assert store.lookup(KEY) == mine == store._artifacts._win(KEY, other)
    assert set(store._sink.folders(KEY)) == {mine.attempt, other.attempt}


def test_an_answer_that_was_lost(cloud: Bucket, uri: str, engine: Path, tmp_path: Path) -> None:
    """The manifest stands, though its writer has no answer: trying again finds it there, and it is one's own."""
    cloud.lose_answers = True
    store = open_at(uri, tmp_path)
    published = store.publish(KEY, engine, manifest())
    assert store.lookup(KEY) == published
    assert store._sink.folders(KEY) == [published.attempt]


def test_a_conflict_is_no_loss(cloud: Bucket, engine: Path, tmp_path: Path) -> None:
    """S3 answers 409 while another client writes the same object, which may yet fail."""
    store = open_at(URIS["s3"], tmp_path)
    store.publish(OTHER, engine, manifest(OTHER))
    cloud.conflicts = 2
    published = store.publish(KEY, engine, manifest())
    assert store.lookup(KEY) == published
    assert cloud.conflicts == 0


def test_what_passes_is_tried_again(cloud: Bucket, uri: str, engine: Path, tmp_path: Path) -> None:
    cloud.troubles = [503, 500, 429]
    reported: list[int] = []
    published = open_at(uri, tmp_path).publish(KEY, engine, manifest(), lambda done, total: reported.append(done))
    assert reported[-1] == published.size
    assert cloud.troubles == []


RIGHTS = {
    "s3": "s3:PutObject, s3:DeleteObject",
    "gs": "storage.objects.list, .get, .create and .delete",
    "az": "Storage Blob Data Contributor",
    "abfss": "Storage Blob Data Contributor",
}


@pytest.mark.parametrize("method", ["PUT", "GET"])
def test_a_refusal_names_what_is_missing(cloud: Bucket, engine: Path, tmp_path: Path, uri: str, method: str) -> None:
    cloud.refused = {method: (403, "AccessDenied")}
    words = (
        f"403 Forbidden .*{RIGHTS[uri.partition(':')[0]]}.* there.*: engines are written to spec.storage.engineCache"
    )
    with pytest.raises(StorageError, match=words):
        open_at(uri, tmp_path).publish(KEY, engine, manifest())


def test_a_refused_removal_is_reported_too(cloud: Bucket, engine: Path, tmp_path: Path, uri: str) -> None:
    store = open_at(uri, tmp_path)
    store.publish(KEY, engine, manifest())
    cloud.refused = {"DELETE": (403, "AccessDenied")}
    with pytest.raises(StorageError, match=f"403.*{RIGHTS[uri.partition(':')[0]]}"):
        store.remove(KEY)
    assert store.lookup(KEY) is not None


@pytest.mark.parametrize("full", [(507, "XMinioStorageFull"), (403, "QuotaExceeded")])
def test_a_full_bucket(cloud: Bucket, engine: Path, tmp_path: Path, full: tuple[int, str]) -> None:
    cloud.quota, cloud.full = 100, full
    with pytest.raises(FullError, match=r"no more goes in there: make the bucket's quota of spec.storage.engineCache"):
        open_at(URIS["s3"], tmp_path).publish(KEY, engine, manifest())
    assert cloud.objects == {}


def test_a_bucket_that_is_not_there(cloud: Bucket, engine: Path, tmp_path: Path, uri: str) -> None:
    cloud.name = "other"
    with pytest.raises(StorageError, match=r"404 .*create the bucket, or correct spec.storage.engineCache.storageUri"):
        open_at(uri, tmp_path).publish(KEY, engine, manifest())


def test_a_server_that_is_not_there(
    engine: Path, tmp_path: Path, bucket: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    with pytest.raises(StorageError, match=r"s3://fleet/engines/.*4 times in a row"):
        open_at(URIS["s3"], tmp_path).lookup(KEY)


def test_the_second_finds_the_first(cloud: Bucket, uri: str, engine: Path, tmp_path: Path) -> None:
    first = open_at(uri, tmp_path).publish(KEY, engine, manifest())
    second = open_at(uri, tmp_path)
    assert second._artifacts._win(KEY, racing(second, tmp_path)) == first
    assert second._sink.folders(KEY) == [first.attempt]


def racing(store: EngineStore, folder: Path) -> Manifest:
    """Return the manifest of a second publisher that has written its files and has not looked again."""
    files = local_files(write(folder / "mine", {"x": b"1"}))
    return store._artifacts._write(KEY, files, replace(manifest(), attempt="ab" * 8), lambda done, total: None)


def test_connections_that_are_cut(
    bucket: S3, cache: Path, tmp_path: Path, proxied: Callable[[int], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Answers are lost and cut short; what was done is not done twice, and what was not is done again."""
    monkeypatch.setattr(bucket_sink, "PART", 5 * 2**20)
    proxy = proxied(bucket.port)
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{proxy.port}")
    big = write(tmp_path / "big", {"weights": bytes(range(256)) * 2**16, "config": b"1", "sub/x": b"2"})
    proxy.cuts, later = [10, 0], [200, 30, 0]
    store = open_at(URIS["s3"], tmp_path)
    reported: list[int] = []

    def progress(done: int, total: int) -> None:
        reported.append(done)
        if done:
            proxy.cuts += later
            later.clear()

    published = store.publish(KEY, big, manifest(), progress)
    assert proxy.cuts == later == []
    assert reported[-1] == published.size
    assert store.lookup(KEY) == published
    assert store._sink.folders(KEY) == [published.attempt]
    assert listing(Storage(cache).fetch(published.uri, published.digest)) == listing(big)
