"""The option `--plot` of commands that draw by matplotlib, which is an extra (`argosy[pictures]`)."""

import os
from importlib.util import find_spec
from pathlib import Path

SUFFIXES = (".png", ".svg")


def errors(path: Path) -> list[str]:
    """Return the reasons why no picture can be drawn to `path`."""
    if path.suffix not in SUFFIXES:
        return [f"--plot {path}: must end with {' or '.join(SUFFIXES)}"]
    if faults := file_errors("--plot", path):
        return faults
    if find_spec("matplotlib") is None:
        return ["--plot needs matplotlib, which is not installed: pip install 'argosy[pictures]'"]
    return []


def file_errors(option: str, path: Path) -> list[str]:
    """Return the reasons why no file can be written to the `path` of an option."""
    if path.is_dir():
        return [f"{option} {path}: is a folder; name a file in it"]
    if not path.parent.is_dir():
        return [f"{option} {path}: there is no folder {path.parent}"]
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        return [f"{option} {path}: may not be written; name another file"]
    return []
