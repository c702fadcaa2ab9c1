"""The option `--plot` of commands that draw by matplotlib, which is an extra (`argosy[pictures]`)."""

from importlib.util import find_spec
from pathlib import Path

SUFFIXES = (".png", ".svg")


def errors(path: Path) -> list[str]:
    """Return the reasons why no picture can be drawn to `path`."""
    if path.suffix not in SUFFIXES:
        return [f"--plot {path}: must end with {' or '.join(SUFFIXES)}"]
    if not path.parent.is_dir():
        return [f"--plot {path}: there is no folder {path.parent}"]
    if find_spec("matplotlib") is None:
        return ["--plot needs matplotlib, which is not installed: pip install 'argosy[pictures]'"]
    return []
