"""A Python of another version than the one that runs the tests: this machine's, or one that uv brings."""

import shutil
import subprocess
import sys
from pathlib import Path

from tests.peers.cache import PeerUnavailableError, installed, run

OLDEST = (3, 12)
"""The oldest that is taken: the packages that the tests install into it are not made for much older ones."""


def other_python() -> str:
    """Return the interpreter. Raises PeerUnavailableError where there is none and none can be brought."""
    names = [*(f"python3.{minor}" for minor in range(OLDEST[1], 20)), "python3"]
    pyenv = map(str, sorted(Path.home().glob(".pyenv/versions/3.1[2-9]*/bin/python")))
    candidates = [*pyenv, *filter(None, map(shutil.which, names))]
    return next(filter(_is_another, candidates), None) or _brought()


def _is_another(python: str) -> bool:
    code = f"import sys; print(sys.version_info >= {OLDEST} and sys.version_info[1])"
    done = subprocess.run([python, "-c", code], capture_output=True, text=True)
    return done.returncode == 0 and done.stdout.strip() not in ("False", str(sys.version_info.minor))


def _brought() -> str:
    """Return one that uv installs into the peers' cache."""
    version = "3.12" if sys.version_info[:2] != OLDEST else "3.13"

    def build(folder: Path) -> None:
        uv = shutil.which("uv", path=str(Path(sys.executable).parent)) or shutil.which("uv")
        if uv is None:
            raise PeerUnavailableError(f"no other Python from 3.12 on, and no uv to install Python {version}")
        command = [uv, "python", "install", version, "--install-dir", str(folder), "--no-bin"]
        run(command, f"no other Python from 3.12 on: uv python install {version}")

    folder = installed(f"python-{version}", build)
    interpreters = sorted(folder.glob(f"cpython-*/bin/python{version}"))
    if not interpreters:
        raise PeerUnavailableError(f"uv python install {version} left no interpreter in {folder}")
    return str(interpreters[0])
