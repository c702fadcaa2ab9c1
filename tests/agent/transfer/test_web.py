"""Web servers that cut, refuse, change and lie."""

import hashlib
import threading
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
from tests.agent.sites import QUICK

from argosy_agent.cache.storage import Storage
from argosy_agent.transfer.errors import DigestMismatchError, StorageError, StorageStoppedError
from argosy_agent.transfer.stores import ranged

BODY = bytes(range(256)) * 40


def test_a_large_file_is_read_in_parts_at_once(site, storage: Storage) -> None:
    site.files["/m.onnx"] = BODY
    reported: list[tuple[int, int]] = []
    copy = storage.fetch(f"{site.url}/m.onnx", progress=lambda done, total: reported.append((done, total)))
    assert (copy / "m.onnx").read_bytes() == BODY
    assert reported[0] == (0, len(BODY))
    assert reported[-1] == (len(BODY), len(BODY))
    assert [done for done, _ in reported] == sorted(done for done, _ in reported)
    assert len({requested for _, requested in site.requests}) == 1 + -(-len(BODY) // 1000)


def test_a_cut_connection_is_taken_up_where_it_was(site, cache: Path) -> None:
    site.files["/m"] = BODY
    site.cuts = [10, 0, 999, 500]
    full = Storage(cache, retry=QUICK, part=len(BODY))
    assert (full.fetch(f"{site.url}/m") / "m").read_bytes() == BODY
    describing, *reading = [int(requested[6:].partition("-")[0]) for _, requested in site.requests]
    assert (describing, reading) == (0, [0, 10, 10, 1009, 1509])


def test_parts_that_are_read_at_once_and_cut_are_all_taken_up(site, storage: Storage) -> None:
    site.files["/m"] = BODY
    site.cuts = [10, 0, 999, 500]
    assert (storage.fetch(f"{site.url}/m") / "m").read_bytes() == BODY
    assert site.cuts == []


@pytest.mark.parametrize("status", [429, 500, 503])
def test_what_passes_is_tried_again(site, storage: Storage, status: int) -> None:
    site.files["/m"] = BODY
    site.statuses = [status, status]
    assert (storage.fetch(f"{site.url}/m") / "m").read_bytes() == BODY


def test_what_does_not_pass_is_reported_with_its_status(site, storage: Storage) -> None:
    site.refused = {"/500": 500}
    with pytest.raises(StorageError, match=r"/500: the server answered 500 Internal Server Error, 4 times in a row"):
        storage.fetch(f"{site.url}/500")
    assert len(site.requests) == 4


@pytest.mark.parametrize(("status", "words"), [(403, "user:password@host"), (404, "correct spec.storageUri")])
def test_a_refusal_is_reported_at_once_with_the_way_out(site, storage: Storage, status: int, words: str) -> None:
    site.refused = {"/m": status}
    with pytest.raises(StorageError, match=rf"{site.url}/m: the server answered {status} .*{words}"):
        storage.fetch(f"{site.url}/m")
    assert len(site.requests) == 1


def test_half_a_file_is_an_error_and_the_next_try_goes_on(site, storage: Storage, cache: Path) -> None:
    site.files["/m"] = BODY
    site.cuts = [300] + [0] * 100
    with pytest.raises(StorageError, match=r"m was cut|closed|peer|incomplete"):
        storage.fetch(f"{site.url}/m")
    (left,) = cache.iterdir()
    assert left.name.startswith(".partial-remote-")
    site.cuts, site.requests = [], []
    assert (storage.fetch(f"{site.url}/m") / "m").read_bytes() == BODY
    assert any(int(requested[6:].partition("-")[0]) % 1000 == 300 for _, requested in site.requests)
    assert sorted(path.name.partition("-")[0] for path in cache.iterdir()) == [".origin", "remote"]


def test_a_changed_source_starts_afresh(site, storage: Storage, cache: Path) -> None:
    site.files["/m"] = BODY
    site.cuts = [300] + [0] * 100
    with pytest.raises(StorageError):
        storage.fetch(f"{site.url}/m")
    site.cuts, site.files["/m"] = [], BODY[::-1]
    assert (storage.fetch(f"{site.url}/m") / "m").read_bytes() == BODY[::-1]


def test_a_source_that_changes_meanwhile_is_never_mixed(site, storage: Storage) -> None:
    site.files["/m"] = BODY

    def change(path: str) -> None:
        if len(site.requests) == 4:
            site.files[path] = BODY[::-1]

    site.before = change
    assert (storage.fetch(f"{site.url}/m") / "m").read_bytes() == BODY[::-1]


def test_without_a_mark_nothing_of_an_earlier_try_is_believed(site, storage: Storage) -> None:
    site.files["/m"], site.marks["/m"] = BODY, ""
    site.cuts = [300] + [0] * 100
    with pytest.raises(StorageError):
        storage.fetch(f"{site.url}/m")
    site.cuts, site.files["/m"] = [], BODY[::-1]
    assert (storage.fetch(f"{site.url}/m") / "m").read_bytes() == BODY[::-1]


@pytest.mark.parametrize("unsized", [False, True])
def test_a_server_without_ranges(site, storage: Storage, unsized: bool) -> None:
    site.files["/m"] = BODY
    site.plain, site.unsized = True, unsized
    site.cuts = [] if unsized else [9999, 5000, 100]
    reported: list[int] = []
    copy = storage.fetch(f"{site.url}/m", progress=lambda done, total: reported.append(done))
    assert (copy / "m").read_bytes() == BODY
    assert reported[-1] == len(BODY)


def test_an_empty_file(site, storage: Storage) -> None:
    site.files["/empty"] = b""
    assert (storage.fetch(f"{site.url}/empty") / "empty").read_bytes() == b""


def test_a_password_is_used_and_never_shown(site, storage: Storage) -> None:
    site.files["/m"] = BODY
    address = urlsplit(site.url).netloc
    storage.fetch(f"http://me:hidden@{address}/m")
    assert site.headers[0]["Authorization"].startswith("Basic ")
    with pytest.raises(StorageError) as reported:
        storage.fetch(f"http://me:hidden@{address}/nothing?X-Signature=hidden")
    assert "hidden" not in str(reported.value)


def test_a_password_does_not_follow_to_another_host(site, storage: Storage) -> None:
    host, port = urlsplit(site.url).hostname, urlsplit(site.url).port
    site.files["/m"] = BODY
    site.answers["/there"] = (302, {"Location": f"http://localhost:{port}/m"}, b"")
    storage.fetch(f"http://me:hidden@{host}:{port}/there")
    requested = zip(site.requests, site.headers, strict=True)
    assert all(("Authorization" in headers) == (path == "/there") for (path, _), headers in requested)


def test_a_wrong_digest_is_reported_and_nothing_of_it_stays(site, storage: Storage, cache: Path) -> None:
    site.files["/m"] = BODY
    right = f"sha256:{hashlib.sha256(BODY).hexdigest()}"
    with pytest.raises(DigestMismatchError, match=rf"its digest is {right}, not the declared sha256:00"):
        storage.fetch(f"{site.url}/m", "sha256:" + "0" * 64)
    assert list(cache.iterdir()) == []
    assert storage.fetch(f"{site.url}/m", right).is_dir()


def test_a_broken_archive_is_reported(site, storage: Storage, cache: Path) -> None:
    site.files["/m.tar.gz"] = b"\x1f\x8b" + BODY
    with pytest.raises(StorageError, match=r"m\.tar\.gz cannot be unpacked"):
        storage.fetch(f"{site.url}/m.tar.gz")
    assert list(cache.iterdir()) == []


def test_a_stop_keeps_what_came_for_the_next_process(site, cache: Path, storage: Storage) -> None:
    site.files["/m"] = BODY
    with pytest.raises(StorageStoppedError):
        storage.fetch(f"{site.url}/m", progress=lambda done, total: storage.stop() if done > 5000 else None)
    site.requests.clear()
    reported: list[int] = []
    copy = Storage(cache, part=1000).fetch(f"{site.url}/m", progress=lambda done, total: reported.append(done))
    assert (copy / "m").read_bytes() == BODY
    assert reported[0] >= 1000
    assert len(site.requests) < 1 + -(-len(BODY) // 1000)


def test_a_server_that_stands_still_is_queried_again(site, storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranged, "TIMEOUT", httpx.Timeout(0.3))
    site.files["/m"] = BODY
    over = threading.Event()
    site.before = lambda path: over.wait(30) if len(site.requests) == 3 else None
    try:
        assert (storage.fetch(f"{site.url}/m") / "m").read_bytes() == BODY
    finally:
        over.set()


def test_no_server(storage: Storage) -> None:
    with pytest.raises(StorageError, match=r"http://127\.0\.0\.1:1/m: .*4 times in a row"):
        storage.fetch("http://127.0.0.1:1/m")
