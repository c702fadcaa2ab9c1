"""The origin of a copy is a digest: nothing is fetched or stored again where another version's copy has it."""

import hashlib
import os
from pathlib import Path

from tests.agent.sites import Site

from argosy_agent.cache.storage import Storage

BODY = b"model" * 1000


def digest(storage: Storage, copy: Path) -> str:
    """Return the digest that is reported of a copy."""
    return storage.digests([copy.name])[copy.name]


def test_files_that_did_not_change_are_linked_under_a_new_version(tmp_path: Path, site: Site) -> None:
    storage, uri = Storage(tmp_path / "cache"), f"{site.url}/m"
    site.files["/m"] = BODY
    first = storage.fetch(uri, version=1)
    requests = len(site.requests)
    second = storage.fetch(uri, version=2)
    assert first != second
    assert os.path.samefile(first / "m", second / "m")
    assert site.requests[requests:] == [("/m", "bytes=0-0")]
    assert digest(storage, first) == digest(storage, second) != ""


def test_a_changed_etag_is_another_digest(tmp_path: Path, site: Site) -> None:
    storage, uri = Storage(tmp_path / "cache"), f"{site.url}/m"
    site.files["/m"] = b"old"
    first = storage.fetch(uri, version=1)
    site.files["/m"] = b"new"
    second = storage.fetch(uri, version=2)
    assert (second / "m").read_bytes() == b"new"
    assert digest(storage, first) != digest(storage, second)


def test_without_a_strong_etag_a_new_version_is_fetched(tmp_path: Path, site: Site) -> None:
    storage, uri = Storage(tmp_path / "cache"), f"{site.url}/m"
    for etag in ("", 'W/"same"'):
        site.marks["/m"], site.files["/m"] = etag, b"old"
        storage.fetch(uri, version=1)
        site.files["/m"] = b"new"
        assert (storage.fetch(uri, version=2) / "m").read_bytes() == b"new"
        storage = Storage(tmp_path / "other")


def test_the_same_files_read_with_other_credentials_are_no_copy_for_these(tmp_path: Path, site: Site) -> None:
    storage, uri = Storage(tmp_path / "cache"), f"{site.url}/m"
    site.files["/m"] = BODY
    first = storage.fetch(uri, version=1)
    second = Storage(tmp_path / "cache", identity="another pool").fetch(uri, version=2)
    assert not os.path.samefile(first / "m", second / "m")


def test_a_declared_digest_is_what_is_reported(tmp_path: Path, site: Site) -> None:
    storage, uri = Storage(tmp_path / "cache"), f"{site.url}/m"
    site.files["/m"] = BODY
    declared = "sha256:" + hashlib.sha256(BODY).hexdigest()
    assert digest(storage, storage.fetch(uri, declared)) == declared


def test_a_later_process_knows_it(tmp_path: Path, site: Site) -> None:
    uri = f"{site.url}/m"
    site.files["/m"] = BODY
    storage = Storage(tmp_path / "cache")
    reported = digest(storage, storage.fetch(uri, version=1))
    later = Storage(tmp_path / "cache")
    assert digest(later, later.fetch(uri, version=2)) == reported
    assert reported.startswith("listing:")


def test_bytes_that_cached_models_share_count_once_and_go_last(tmp_path: Path, site: Site) -> None:
    site.files |= {"/m": b"m" * 600, "/n": b"n" * 600}
    storage = Storage(tmp_path / "cache", 1000)
    first = storage.fetch(f"{site.url}/m", version=1)
    second = storage.fetch(f"{site.url}/m", version=2)
    assert first.is_dir()
    storage.keep([])
    storage.fetch(f"{site.url}/n")
    assert not first.exists()
    assert not second.exists()
    assert storage.digests([first.name, second.name]) == {}
