"""Unpacked environments: one for all of its users, removed after the last, whatever is killed and whenever."""

import errno
import fcntl
import io
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

import pytest

from argosy_runtime.backends.environments.unpacked import remove_unused, unpack

FILES = {f"folder{number}/file": bytes([number]) * 1000 for number in range(20)}


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setenv("TMPDIR", str(folder))
    return folder


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    path = tmp_path / "env.tar.gz"
    with tarfile.open(path, "w:gz") as made:
        for name, content in FILES.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            made.addfile(member, io.BytesIO(content))
    return path


def is_complete(folder: Path) -> bool:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("file")} == FILES


def test_it_stays_until_the_last_user_is_gone(temporary: Path, archive: Path) -> None:
    first, second = unpack(archive), unpack(archive)
    assert first.folder == second.folder
    assert is_complete(first.folder)
    first.release()
    remove_unused()
    assert is_complete(second.folder)
    second.release()
    second.release()
    remove_unused()
    assert not list(temporary.iterdir())


def test_an_archive_that_has_changed_is_unpacked_again(temporary: Path, archive: Path) -> None:
    before = unpack(archive)
    os.utime(archive, (1, 1))
    after = unpack(archive)
    assert before.folder != after.folder
    before.release()
    remove_unused()
    assert list(temporary.iterdir()) == [after.folder]
    after.release()


HALF_WAY = """
import sys
from pathlib import Path
from argosy_runtime.backends.environments import unpacked

def stop_half_way(contents, folder):
    (folder / "half").write_text("")
    print("half way", flush=True)
    sys.stdin.read()

unpacked.extract_all = stop_half_way
unpacked.unpack(Path(sys.argv[1]))
"""


def test_a_half_is_left_alone_until_its_process_is_killed(temporary: Path, archive: Path) -> None:
    with _started(HALF_WAY, archive) as unpacking:
        assert unpacking.stdout is not None
        assert unpacking.stdout.readline() == b"half way\n"
        remove_unused()
        (half,) = temporary.iterdir()
        assert (half / "half").is_file()
        full = unpack(archive)
        unpacking.kill()
        unpacking.wait()
        remove_unused()
        assert list(temporary.iterdir()) == [full.folder]
        full.release()


def test_a_folder_that_another_server_published_and_removed_meanwhile_is_unpacked_again(
    temporary: Path, archive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rename, errors = Path.rename, [OSError(errno.ENOTEMPTY, "Directory not empty")]

    def as_if_it_existed(partial: Path, target: Path) -> Path:
        if errors:
            raise errors.pop()
        return rename(partial, target)

    monkeypatch.setattr(Path, "rename", as_if_it_existed)
    held = unpack(archive)
    assert list(temporary.iterdir()) == [held.folder]
    held.release()


USER = """
import sys
from pathlib import Path
from argosy_runtime.backends.environments.unpacked import remove_unused, unpack

for _ in range(25):
    held = unpack(Path(sys.argv[1]))
    remove_unused()
    assert len(list(held.folder.rglob("file"))) == int(sys.argv[2])
    held.release()
    remove_unused()
"""


def test_servers_that_come_and_go_do_not_disturb_one_another(temporary: Path, archive: Path) -> None:
    users = [_started(USER, archive, str(len(FILES))) for _ in range(3)]
    for user in users:
        assert user.communicate()[0] == b""
    assert [user.returncode for user in users] == [0, 0, 0]
    remove_unused()
    assert not list(temporary.iterdir())


def _started(program: str, *arguments: object) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-c", program, *map(str, arguments)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


@pytest.fixture
def another_user(monkeypatch: pytest.MonkeyPatch) -> None:
    own = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: own + 1)


def test_what_another_user_put_there_is_not_used(temporary: Path, archive: Path, another_user: None) -> None:
    with pytest.raises(PermissionError, match="belongs to another user"):
        unpack(archive)


def test_what_another_user_put_there_stays(temporary: Path, archive: Path, another_user: None) -> None:
    planted = temporary / f"argosy-environment-{os.getuid()}-planted"
    planted.mkdir()
    remove_unused()
    assert planted.is_dir()


@pytest.mark.parametrize("kind", ["link", "file"])
def test_a_link_or_file_of_another_user_is_reported_as_such(
    temporary: Path, archive: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = os.getuid()
    folder = unpack(archive).folder
    planted = folder.with_name(folder.name.replace(f"-{own}-", f"-{own + 1}-"))
    planted.symlink_to(folder) if kind == "link" else planted.write_text("")
    monkeypatch.setattr(os, "getuid", lambda: own + 1)
    with pytest.raises(PermissionError, match=f"{planted.name}' belongs to another user: have it removed, or set TMPD"):
        unpack(archive)


def test_what_a_server_of_an_earlier_release_uses_stays(temporary: Path) -> None:
    used = temporary / f"argosy-env-{os.getuid()}-0123456789abcdef01234567"
    used.mkdir()
    remove_unused()
    assert used.is_dir()


def test_without_locks_environments_are_unpacked_once_and_stay(
    temporary: Path, archive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise OSError(errno.ENOTSUP, "Operation not supported")

    monkeypatch.setattr(fcntl, "flock", refused)
    first, second = unpack(archive), unpack(archive)
    assert first.folder == second.folder
    first.release()
    second.release()
    remove_unused()
    assert list(temporary.iterdir()) == [first.folder]
    assert is_complete(first.folder)
