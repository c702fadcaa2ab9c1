"""The names in the repositories, which are listed often."""

import os
from pathlib import Path

import pytest

from argosy_runtime.errors import ErrorKind, ServingError
from argosy_runtime.repository.folders import layout
from argosy_runtime.repository.folders.catalog import Catalog

LONG_AGO = 1_000_000_000


def settle(folder: Path, seconds: int = LONG_AGO) -> None:
    """Set the time of the last change to long ago."""
    os.utime(folder, (seconds, seconds))


def test_it_names_what_a_scan_finds(tmp_path):
    for name in ("a", "b", ".hidden"):
        (tmp_path / name).mkdir()
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to(tmp_path / "a")
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    assert Catalog([tmp_path, tmp_path]).names() == layout.scan(tmp_path).keys() == {"a", "b", "link"}


def test_a_repository_that_did_not_change_is_not_listed_again(tmp_path, monkeypatch):
    (tmp_path / "a").mkdir()
    settle(tmp_path)
    catalog = Catalog([tmp_path])
    assert catalog.names() == {"a"}
    listed = []
    scandir = os.scandir
    monkeypatch.setattr(os, "scandir", lambda path: listed.append(path) or scandir(path))
    assert catalog.names() == {"a"}
    assert not listed
    (tmp_path / "b").mkdir()
    settle(tmp_path, LONG_AGO + 1)
    assert catalog.names() == {"a", "b"}
    assert listed == [tmp_path]


def test_what_changed_a_moment_ago_is_listed_again(tmp_path):
    now = (2**31 - 1, 2**31 - 1)
    (tmp_path / "a").mkdir()
    os.utime(tmp_path, now)
    catalog = Catalog([tmp_path])
    assert catalog.names() == {"a"}
    (tmp_path / "b").mkdir()
    os.utime(tmp_path, now)
    assert catalog.names() == {"a", "b"}, "the clock of a file system may not tell two changes apart"


def test_a_link_is_followed_every_time(tmp_path):
    repository, target = tmp_path / "models", tmp_path / "target"
    repository.mkdir()
    (repository / "m").symlink_to(target)
    settle(repository)
    catalog = Catalog([repository])
    assert catalog.names() == set()
    target.mkdir()
    assert catalog.names() == {"m"}


def test_a_repository_that_is_not_there(tmp_path):
    with pytest.raises(ServingError, match="failed to open directory") as caught:
        Catalog([tmp_path / "none"]).names()
    assert caught.value.kind is ErrorKind.INTERNAL
