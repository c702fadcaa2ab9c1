"""The value that a model's process is started by: interpreter, environment variables, import paths."""

import json
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

PATHS: Final = "ARGOSY_IMPORT_PATHS"
"""The environment variable by which another interpreter than the server's finds the server's code, as JSON.

Its fields are `first`, `last` and `lent`: folders of packages by their names, or in an order.
"""

_ROOT: Final = str(Path(__file__).resolve().parents[3])
# The last one is the library that compiled modules share, where they are compiled.
_OURS: Final = ("argosy_runtime", "argosy_common", "argosy__mypyc")
# The server's interpreter is configured by them; another one would take modules of the server first.
_OF_THE_INTERPRETER: Final = ("PYTHONPATH", "PYTHONHOME", "PYTHONUSERBASE", "PYTHONPLATLIBDIR", "__PYVENV_LAUNCHER__")


def _nothing() -> None:
    """Release nothing."""


@dataclass(frozen=True, slots=True)
class ProcessEnvironment:
    """The environment of a model's process.

    `variables` are all environment variables. `packages`: the folder of the environment's packages, None for the
    server's own. `release` is called when the process has ended.
    """

    executable: str
    variables: Mapping[str, str] = field(repr=False)
    packages: Path | None = None
    release: Callable[[], None] = _nothing

    @property
    def finds_the_servers_code(self) -> bool:
        """True if the interpreter imports the server's code by itself: it is the server's own."""
        return PATHS not in self.variables


def of_the_server(before: Mapping[str, str] | None = None) -> ProcessEnvironment:
    """Return the server's own interpreter. `before`: folders that are searched first, by environment variable."""
    path = os.pathsep.join(filter(None, [_ROOT, os.environ.get("PYTHONPATH")]))
    variables = {**os.environ, "PYTHONUNBUFFERED": "1", "PYTHONPATH": path}
    variables.pop(PATHS, None)
    _prepend(variables, before or {})
    return ProcessEnvironment(sys.executable, variables)


def of_interpreter(python: Path, same_abi: bool, lent: Mapping[str, str]) -> ProcessEnvironment:
    """Return the environment of another interpreter.

    Its own packages come first. Where it runs the server's Python (`same_abi`) the server's packages come last, else
    only those of `lent`: the folder of each pure Python package that the environment lacks, by the package's name.
    """
    root = python.parents[1]
    variables = {name: value for name, value in os.environ.items() if name not in _OF_THE_INTERPRETER}
    variables |= {"PYTHONUNBUFFERED": "1", "PYTHONNOUSERSITE": "1"}
    variables |= {"VIRTUAL_ENV": str(root), "VIRTUAL_ENV_PROMPT": root.name}
    if (root / "conda-meta").is_dir():
        variables["CONDA_PREFIX"] = str(root)
    _prepend(variables, {"PATH": str(root / "bin"), "LD_LIBRARY_PATH": str(root / "lib")})
    variables[PATHS] = json.dumps(
        {"first": dict.fromkeys(_OURS, _ROOT), "last": _servers_folders() if same_abi else [], "lent": dict(lent)}
    )
    return ProcessEnvironment(str(python), variables)


def _prepend(variables: dict[str, str], folders: Mapping[str, str]) -> None:
    for name, folder in folders.items():
        variables[name] = os.pathsep.join(filter(None, [folder, variables.get(name)]))


def _servers_folders() -> list[str]:
    """Return the folders that this process imports packages from, without the standard library."""
    configured = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    installed = [folder for folder in sys.path if Path(folder).name in ("site-packages", "dist-packages")]
    return list(dict.fromkeys([*filter(None, configured), *installed]))
