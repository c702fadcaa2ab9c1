"""The cache folder: its bound, its sharing, and a disk that is full."""

import errno
import os
import re
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from argosy_agent.cache.entries import REPORT_S
from argosy_agent.cache.owners import Owner
from argosy_agent.cache.partials import Partial
from argosy_agent.cache.storage import Storage
from argosy_agent.transfer.errors import StorageError

MIB = 2**20


def offered(site: Any, **sizes: int) -> dict[str, str]:
    """Offer files of so many bytes; return their URLs."""
    site.files |= {f"/{name}": name.encode() * size for name, size in sizes.items()}
    return {name: f"{site.url}/{name}" for name in sizes}


def cached(cache: Path) -> set[str]:
    """Return the files of all complete copies."""
    return {path.name for path in cache.glob("remote-*/*")}


def test_the_least_recently_used_goes(site: Any, cache: Path) -> None:
    urls = offered(site, a=400, b=400, c=400, d=400)
    storage = Storage(cache, 1000)
    for name, age in (("a", 300), ("b", 200)):
        copy = storage.fetch(urls[name])
        os.utime(copy, (time.time() - age,) * 2)
    storage.keep([])
    storage.fetch(urls["a"])  # used again: b is now the older one
    storage.fetch(urls["c"])
    assert cached(cache) == {"a", "c"}
    storage.keep([storage.key(urls["a"])])
    storage.fetch(urls["d"])
    assert cached(cache) == {"a", "d"}


def test_a_copy_that_another_process_published_and_removed_meanwhile_is_published(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rename, errors = Path.rename, [OSError(errno.ENOTEMPTY, "Directory not empty")]

    def as_if_it_existed(files: Path, target: Path) -> Path:
        if errors:
            raise errors.pop()
        return rename(files, target)

    (tmp_path / "partial").mkdir()
    partial = Partial(tmp_path / "partial")
    (partial.files / "a").write_bytes(b"a")
    monkeypatch.setattr(Path, "rename", as_if_it_existed)
    partial.publish(tmp_path / "remote-a")
    partial.journal.close()
    assert (tmp_path / "remote-a" / "a").read_bytes() == b"a"


def test_what_cannot_fit_is_refused_and_nothing_goes_for_it(site: Any, cache: Path) -> None:
    urls = offered(site, a=700, b=200, c=900)
    storage = Storage(cache, 1000)
    for name in "ab":
        storage.fetch(urls[name])
    storage.keep([storage.key(urls["a"])])
    words = "c needs 900 bytes; spec.storage.modelCache.sizeLimit is 1000 bytes and 700 bytes of it is served"
    with pytest.raises(StorageError, match=words):
        storage.fetch(urls["c"])
    assert cached(cache) == {"a", "b"}


def test_what_is_retained_is_reported_again_though_nothing_changes(
    site: Any, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    urls = offered(site, a=600)
    storage = Storage(cache)
    storage.fetch(urls["a"])
    keys = [storage.key(urls["a"])]
    storage.keep(keys)
    (record,) = cache.glob(".kept-*")
    long_ago = time.time() - 3600
    os.utime(record, (long_ago,) * 2)
    storage.keep(keys)
    assert record.stat().st_mtime == pytest.approx(long_ago)
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now + 2 * REPORT_S)
    storage.keep(keys)
    assert record.stat().st_mtime > long_ago + 1800


def test_what_another_agent_serves_stays(site: Any, cache: Path) -> None:
    urls = offered(site, a=600, b=600)
    one, other = Storage(cache, 1000), Storage(cache, 1000)
    one.fetch(urls["a"])
    one.keep([one.key(urls["a"])])
    with pytest.raises(StorageError, match="600 bytes of it is served"):
        other.fetch(urls["b"])
    for record in cache.glob(".kept-*"):
        os.utime(record, (time.time() - 3600,) * 2)
    other.fetch(urls["b"])
    assert cached(cache) == {"b"}


def test_threads_that_want_the_same_fetch_it_once(site: Any, cache: Path) -> None:
    urls = offered(site, a=5000)
    storage = Storage(cache)
    fetched: list[Path] = []
    threads = [threading.Thread(target=lambda: fetched.append(storage.fetch(urls["a"]))) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(fetched)) == 1
    assert len(site.requests) == 2


def test_agents_that_share_a_cache_wait_for_one_another(site: Any, cache: Path) -> None:
    urls = offered(site, a=5000)
    begun, go_on = threading.Event(), threading.Event()

    def hold(path: str) -> None:
        begun.set()
        go_on.wait(30)

    site.before = hold
    fetched: list[Path] = []
    first = threading.Thread(target=lambda: fetched.append(Storage(cache).fetch(urls["a"])))
    first.start()
    assert begun.wait(30)
    second = threading.Thread(target=lambda: fetched.append(Storage(cache).fetch(urls["a"])))
    second.start()
    go_on.set()
    for thread in (first, second):
        thread.join()
    assert len(set(fetched)) == 1
    assert len(site.requests) == 2


def test_a_killed_agents_copy_is_taken_over(site: Any, cache: Path) -> None:
    urls = offered(site, a=100 * 1000)
    program = (
        "import sys, os; from pathlib import Path; from argosy_agent.cache.storage import Storage\n"
        "die = lambda done, total: os._exit(9) if done >= 50_000 else None\n"
        "Storage(Path(sys.argv[1]), part=10_000).fetch(sys.argv[2], progress=die)\n"
    )
    ended = subprocess.run([sys.executable, "-c", program, str(cache), urls["a"]], timeout=60, check=False)
    assert ended.returncode == 9
    (left,) = cache.glob(".partial-*.*")
    assert Owner.parse(left.name.split(".", 2)[2])
    progress: list[int] = []
    copy = Storage(cache, part=10_000).fetch(urls["a"], progress=lambda done, total: progress.append(done))
    assert (copy / "a").read_bytes() == site.files["/a"]
    assert progress[0] > 0
    assert {path.name for path in cache.iterdir()} == {copy.name, f".origin-{copy.name}.json"}


@pytest.mark.parametrize("age", [0, 3600])
def test_a_strangers_copy_is_taken_over_when_it_stands_still(cache: Path, site: Any, age: int) -> None:
    urls = offered(site, a=10)
    storage = Storage(cache)
    stranger = cache / f".partial-{storage.key(urls['a'])}.otherhost_1_1_1_abc"
    stranger.mkdir()
    os.utime(stranger, (time.time() - age,) * 2)
    if age:
        assert storage.fetch(urls["a"]).is_dir()
        assert not stranger.exists()
        return
    waiting = threading.Timer(0.5, storage.stop)
    waiting.start()
    with pytest.raises(StorageError, match="stopped"):
        storage.fetch(urls["a"])
    waiting.join()
    assert stranger.exists()


def cut_short(site: Any, cache: Path) -> str:
    """Stop a fetch after a third of its bytes; return its URL."""
    url = offered(site, a=10_000)["a"]
    first = Storage(cache, part=1000)
    with pytest.raises(StorageError):
        first.fetch(url, progress=lambda done, total: first.stop() if done > 3000 else None)
    return url


def test_files_that_went_from_a_partial_copy_are_read_again(site: Any, cache: Path) -> None:
    url = cut_short(site, cache)
    (left,) = cache.glob(".partial-*/files/a")
    left.unlink()
    assert (Storage(cache).fetch(url) / "a").read_bytes() == site.files["/a"]


def test_a_torn_journal_line_is_not_believed(site: Any, cache: Path) -> None:
    url = cut_short(site, cache)
    (journal,) = cache.glob(".partial-*/journal")
    with journal.open("ab") as file:
        file.write(b'["here", "a", 0, 99')
    assert (Storage(cache).fetch(url) / "a").read_bytes() == site.files["/a"]


def test_a_full_disk_is_reported_and_freed(site: Any, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    urls = offered(site, old=10, a=10_000)
    storage = Storage(cache, part=1000)
    storage.fetch(urls["old"])
    storage.keep([])

    def full(*args: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(StorageError, match=r"/a cannot be fetched: the disk of the model cache .* is full"):
        storage.fetch(urls["a"])
    assert [path for path in cache.iterdir() if not path.name.startswith(".kept-")] == []


FULL = """
import sys
from pathlib import Path
from argosy_agent.cache.storage import Storage
from argosy_agent.transfer.errors import StorageError
cache = Path(sys.argv[1])
storage = Storage(cache)
for uri in sys.argv[2:]:
    try:
        storage.fetch(uri)
    except StorageError as error:
        print(error)
    print(sorted(path.name for path in cache.iterdir()))
"""


@pytest.mark.parametrize("unsized", [False, True])
def test_a_disk_that_really_is_full(site: Any, tmp_path: Path, unsized: bool) -> None:
    """On a small file system of its own, where a user may mount one."""
    size = 24 if not unsized else 20
    urls = offered(site, a=size * MIB)
    site.unsized = site.plain = unsized
    mount = f"mount -t tmpfs -o size=16m none {tmp_path} && exec {sys.executable} -c '{FULL}' {tmp_path} {urls['a']}"
    ran = subprocess.run(
        ["unshare", "-rm", "sh", "-c", mount], capture_output=True, text=True, timeout=100, check=False
    )
    if "mount" in ran.stderr or "unshare" in ran.stderr:
        pytest.skip(f"no file system may be mounted here: {ran.stderr.strip()}")
    assert ran.returncode == 0, ran.stderr
    message, left = ran.stdout.splitlines()
    needs = r"\d+\.\d KiB" if unsized else r"24\.0 MiB"  # of a size that the store leaves out, the first bytes of it
    assert re.search(rf"needs {needs}; the disk of the model cache", message)
    assert "of which 16.0 MiB stay free, and nothing there may go" in message
    assert left == "[]"
