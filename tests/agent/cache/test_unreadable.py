"""Files of a folder that cannot be read are named: a model is never served with files missing."""

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from argosy_agent.cache.storage import Storage
from argosy_agent.transfer.errors import StorageError


def dangling(folder: Path) -> None:
    """Create a link to nothing."""
    (folder / "odd").symlink_to("nowhere")


def circle(folder: Path) -> None:
    """Create a link to itself."""
    (folder / "odd").symlink_to("odd")


def loop(folder: Path) -> None:
    """Create a link to the folder that contains it."""
    (folder / "odd").symlink_to(".")


def fifo(folder: Path) -> None:
    """Create a named pipe."""
    os.mkfifo(folder / "odd")


def deep_loop(folder: Path) -> None:
    """Create a link further down that leads back up."""
    (folder / "a").mkdir()
    (folder / "a" / "odd").symlink_to("..")


def refuse_listing(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Let a folder's listing be refused. Permissions alone deny nothing to root, as which tests may run."""
    listing = os.listdir

    def refusing(path: str | os.PathLike[str]) -> list[str]:
        if os.fspath(path) == str(folder):
            raise PermissionError(13, "Permission denied", os.fspath(path))
        return listing(path)

    monkeypatch.setattr(os, "listdir", refusing)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (dangling, r"odd is a link to nowhere, where nothing is"),
        (circle, r"odd is a link that leads nowhere: Too many levels"),
        (loop, r"odd is a link to a folder that it lies in"),
        (deep_loop, r"a/odd is a link to a folder that it lies in"),
        (fifo, r"odd is a FIFO"),
    ],
)
def test_what_is_no_file_and_no_folder_is_named(tmp_path: Path, make: Callable[[Path], None], message: str) -> None:
    folder = tmp_path / "m"
    folder.mkdir()
    (folder / "model.onnx").write_text("model")
    make(folder)
    with pytest.raises(StorageError, match=rf"^{re.escape(folder.as_uri())}: .*/m/{message}"):
        Storage(tmp_path / "cache").fetch(folder.as_uri())


def test_an_unreadable_subfolder_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "m"
    (folder / "locked").mkdir(parents=True)
    (folder / "model.onnx").write_text("model")
    refuse_listing(monkeypatch, folder / "locked")
    with pytest.raises(StorageError, match=rf"cannot be read: Permission denied \({folder}/locked\)"):
        Storage(tmp_path / "cache").fetch(folder.as_uri())


def test_hidden_folders_and_what_editors_leave_are_passed_over(tmp_path: Path) -> None:
    folder = tmp_path / "m"
    (folder / ".git").mkdir(parents=True)
    (folder / ".git" / "HEAD").write_text("x")
    (folder / ".#model.py").symlink_to("somebody@host.1234")
    (folder / "._model.py").write_text("macOS")
    (folder / "model.py").write_text("model")
    copy = Storage(tmp_path / "cache").fetch(folder.as_uri())
    assert [path.name for path in copy.iterdir()] == ["model.py"]


def test_the_folder_that_ext4_has_on_every_volume_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only root may look into it, and the agent is not root."""
    folder = tmp_path / "m"
    (folder / "lost+found").mkdir(parents=True)
    (folder / "model.py").write_text("model")
    refuse_listing(monkeypatch, folder / "lost+found")
    copy = Storage(tmp_path / "cache").fetch(folder.as_uri())
    assert [path.name for path in copy.iterdir()] == ["model.py"]
