"""A peer is built once, whole or not at all, and why it cannot be had is said."""

from pathlib import Path

import pytest
from tests.peers.cache import PeerUnavailableError, cache_root, installed, run


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARGOSY_PEERS_CACHE", str(tmp_path / "cache"))


def _build(folder: Path) -> None:
    (folder / "program").write_text("first")


def _never(folder: Path) -> None:
    raise AssertionError(f"built again in {folder}")


def test_builds_once() -> None:
    folder = installed("peer-1", _build)
    assert (folder / "program").read_text() == "first"
    assert installed("peer-1", _never) == folder
    assert [path.name for path in cache_root().iterdir()] == ["peer-1"]


def test_failure_leaves_nothing() -> None:
    def fail(folder: Path) -> None:
        _build(folder)
        raise PeerUnavailableError("no such wheel")

    with pytest.raises(PeerUnavailableError, match="no such wheel"):
        installed("peer-1", fail)
    assert list(cache_root().iterdir()) == []


def test_the_first_to_finish_wins() -> None:
    def slow(folder: Path) -> None:
        installed("peer-1", _build)
        (folder / "program").write_text("second")

    assert (installed("peer-1", slow) / "program").read_text() == "first"
    assert [path.name for path in cache_root().iterdir()] == ["peer-1"]


def test_a_failed_command_says_its_last_words() -> None:
    with pytest.raises(PeerUnavailableError, match="listing failed with status 3: gone"):
        run(["sh", "-c", "echo wait; echo gone >&2; exit 3"], "listing")
    with pytest.raises(PeerUnavailableError, match=r"listing: .*No such file"):
        run(["/nonexistent/program"], "listing")
