"""The environment of a Python model that has a `requirements.txt` next to its `model.py`.

It is a virtual environment of the server's Python, made once for the same requirements and kept in a folder that
servers may share. One process installs while the others wait for its lock. An environment without the file that is
written last was left by a killed process, and is made again.
"""

import fcntl
import hashlib
import logging
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from time import monotonic
from typing import Final

from argosy_common.engine_folders import interpreter_in
from argosy_runtime.errors import ServingError, unavailable

from .inspection import environment_with
from .process import ProcessEnvironment

FILE: Final = "requirements.txt"

_log: Final = logging.getLogger("argosy.environments")
_COMPLETE: Final = "argosy-complete"
_LAST_LINES: Final = 12
# Time after which an installation is ended: a resolver may try for ever.
_SECONDS: Final = 1800.0
_NAMING_FILES: Final = ("-r", "--requirement", "-c", "--constraint")

_running: Final[set["subprocess.Popen[str]"]] = set()


def default_folder() -> Path:
    """Return the folder for environments by the XDG base directory specification."""
    cache = os.environ.get("XDG_CACHE_HOME", "")
    base = Path(cache) if os.path.isabs(cache) else Path.home() / ".cache"
    return base / "argosy" / "requirements"


def required(version_dir: Path) -> bool:
    """Return whether a version has requirements."""
    return (version_dir / FILE).is_file()


def environment_of(model: str, version_dir: Path, folder: Path) -> ProcessEnvironment:
    """Return the environment with a version's requirements, installed in `folder` if need be, which may take minutes.

    Raises ServingError: UNAVAILABLE with the last lines of the installer.
    """
    file = version_dir / FILE

    def refuse(reason: str) -> ServingError:
        return unavailable(f"model '{model}': the environment of '{file}' {reason}")

    try:
        root = folder / _key(version_dir)
        folder.mkdir(parents=True, exist_ok=True)
        with _locked(root, model) as lock:
            if not (root / _COMPLETE).exists():
                _install(model, file, root, lock)
    except OSError as error:
        raise refuse(f"cannot be made: {error}") from error
    python = interpreter_in(root)
    if python is None:
        raise refuse(f"has no interpreter bin/python: remove {root}")
    return environment_with(python, refuse)


def end_installations() -> None:
    """End the installations of this process: the server ends."""
    for process in list(_running):
        _kill(process)


@contextmanager
def _locked(root: Path, model: str) -> Iterator[int]:
    """Hold the lock of an environment. An installer that outlives its server holds it, too."""
    descriptor = os.open(f"{root}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            _log.info("model '%s' waits for another process that installs the same requirements", model)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield descriptor
    finally:
        os.close(descriptor)


def _install(model: str, file: Path, root: Path, lock: int) -> None:
    """Make an environment, all of it or nothing. Raises ServingError and OSError."""
    begun = monotonic()
    shutil.rmtree(root, ignore_errors=True)
    _log.info("model '%s': installing '%s' into %s", model, file, root)
    try:
        for command in _commands(file, root):
            _run(model, command, file, lock)
        (root / _COMPLETE).touch()
    except BaseException:
        shutil.rmtree(root, ignore_errors=True)
        raise
    _log.info("model '%s': requirements installed in %.1f s", model, monotonic() - begun)


def _commands(file: Path, root: Path) -> list[list[str]]:
    """Return the commands of pip, whose settings name the indexes; of uv where the server has no pip.

    They run in the folder of the version. With -P its files are no modules of theirs.
    """
    python, ours = str(root / "bin" / "python"), sys.executable
    if find_spec("pip") is not None:
        pip = [ours, "-P", "-m", "pip", "--python", python, "--disable-pip-version-check", "--no-input"]
        return [
            [ours, "-P", "-m", "venv", "--without-pip", str(root)],
            [*pip, "install", "--progress-bar=off", "-r", str(file)],
        ]
    uv = shutil.which("uv") or str(Path(ours).with_name("uv"))
    return [
        [uv, "venv", "--quiet", "--python", ours, str(root)],
        [uv, "pip", "install", "--python", python, "-r", str(file)],
    ]


def _run(model: str, command: Sequence[str], file: Path, lock: int) -> None:
    """Run a command with its lines in the log. Raises ServingError with the last ones where it fails."""
    last: deque[str] = deque(maxlen=_LAST_LINES)
    process = subprocess.Popen(
        command,
        cwd=file.parent,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
        pass_fds=(lock,),
    )
    _running.add(process)
    timer = threading.Timer(_SECONDS, _kill, (process,))
    timer.daemon = True
    timer.start()
    try:
        with process:
            for line in process.stdout or ():
                last.append(line.rstrip())
                _log.info("model '%s': %s", model, last[-1])
    finally:
        timer.cancel()
        _running.discard(process)
    if process.returncode:
        lines = "".join(f"\n  {line}" for line in last)
        how = f"ended with {process.returncode}" if process.returncode > 0 else "was ended"
        raise unavailable(f"model '{model}': '{file}' cannot be installed: {Path(command[0]).name} {how}{lines}")


def _kill(process: "subprocess.Popen[str]") -> None:
    """End an installer with all that it started."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def _key(version_dir: Path) -> str:
    """Return the name of the environment: the digest of the requirements, the files that they name, and the Python."""
    digest = hashlib.sha256(f"{sys.version} {sysconfig.get_config_var('SOABI')} {sys.prefix}\n".encode())
    waiting, seen = [version_dir / FILE], set[Path]()
    while waiting:
        file = waiting.pop()
        if file in seen:
            continue
        seen.add(file)
        content = file.read_bytes()
        digest.update(f"{file.name} {len(content)}\n".encode() + content)
        for option, named in _named(content.decode(errors="replace")):
            # Files of requirements are named from the file that names them, others from the working folder.
            path = (file.parent if option in _NAMING_FILES else version_dir) / named
            if option in _NAMING_FILES and path.is_file():
                waiting.append(path)
            else:
                _add_listing(digest, path)
    return digest.hexdigest()[:32]


def _named(text: str) -> Iterator[tuple[str, str]]:
    """Yield each word of the requirements that can be a path, with the option before it, "" for none."""
    for line in text.splitlines():
        words = line.partition(" #")[0].replace("=", " ", 1 if line.startswith("--") else 0).split()
        if not words or words[0].startswith("#"):
            continue
        option = words[0] if words[0].startswith("-") else ""
        for word in words[1:2] if option else words[:1]:
            yield option, word.removeprefix("file://")


def _add_listing(digest: "hashlib._Hash", path: Path) -> None:
    """Add what names a local wheel, or the files of a local folder, if there is one: names, sizes and times."""
    with suppress(OSError, ValueError):
        files = sorted(path.rglob("*")) if path.is_dir() else [path]
        for file in files:
            stat = file.stat()
            name = file.relative_to(path) if file != path else file.name
            digest.update(f"{name} {stat.st_size} {stat.st_mtime_ns}\n".encode())


__all__ = ["FILE", "default_folder", "end_installations", "environment_of", "required"]
