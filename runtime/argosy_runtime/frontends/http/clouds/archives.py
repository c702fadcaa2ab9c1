"""The folders into which SageMaker unpacks the archives of models: one model each, or an ensemble with its steps."""

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from argosy_runtime.errors import invalid

_ENSEMBLE: Final = re.compile(r'platform:\s*"ensemble"')
_CONFIG: Final = "config.pbtxt"
_CONFIG_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Archive:
    """A repository, and the folder of the model that is loaded from it; empty where it has none."""

    repository: Path
    folder: str


def find(url: str, root: str) -> Archive:
    """Return the archive of a load request's "url", `<root>/<hash>/model[/<subdir>]`. Blocks.

    Of several models it is the ensemble, or else the last by name. Raises INVALID_ARG, in Triton's words, for any other
    path, or one that a link leads out of `root`.
    """
    path = _checked(url, root)
    if (path / _CONFIG).exists():
        return Archive(path.parent, path.name)
    names = _folders(path)
    ensembles = [name for name in names if _is_ensemble(path / name / _CONFIG)]
    return Archive(path, (ensembles or names or [""])[-1])


def _checked(url: str, root: str) -> Path:
    match = re.fullmatch(rf"{re.escape(root)}/([0-9A-Za-z._]+)/model(?:/([0-9A-Za-z._]+)?)?", url)
    if match is not None and not {".", ".."} & set(match.groups()):
        path = Path(url)
        if path.resolve().is_relative_to(Path(root).resolve()):
            return path
    raise invalid(f"Invalid \"url\" '{url}': expected a path of the form {root}/<hash>/model[/<subdir>]")


def _folders(path: Path) -> list[str]:
    try:
        with os.scandir(path) as entries:
            shown = [entry for entry in entries if not entry.name.startswith(".")]
            return sorted(entry.name for entry in shown if entry.is_dir(follow_symlinks=False))
    except OSError:
        # The repository is refused when it is registered.
        return []


def _is_ensemble(config: Path) -> bool:
    try:
        if not config.is_file():
            return False
        with config.open("rb") as file:
            return _ENSEMBLE.search(file.read(_CONFIG_BYTES).decode(errors="replace")) is not None
    except OSError:
        return False
