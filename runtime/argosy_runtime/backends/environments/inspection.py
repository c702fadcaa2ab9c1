"""Inspection of an environment's interpreter before a model's process is started by it."""

import json
import platform
import subprocess
import sysconfig
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.metadata import distributions, version
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from argosy_runtime.errors import ServingError

from .process import ProcessEnvironment, of_interpreter

OLDEST: Final = (3, 11)
"""The oldest Python that the server's code runs on."""

_PROBE: Final = Path(__file__).with_name("probe.py")
_SECONDS: Final = 60.0  # a cold interpreter on a network volume
# What a model's process imports before its model, and the names by which pip installs it.
_NEEDED: Final = {
    "google.protobuf": "protobuf",
    "msgspec": "msgspec",
    "numpy": "numpy",
    "tritonclient": "tritonclient",
}
# Needed packages without compiled code: any Python can import the server's.
_PURE: Final = ("tritonclient",)

# The server's packages that may be why a process does not start with an environment's in their place.
_OUTRANKED: Final = ("numpy", "protobuf", "msgspec", "ml-dtypes", "tritonclient")

Refuse = Callable[[str], ServingError]


@dataclass(frozen=True, slots=True)
class Interpreter:
    """What an interpreter reports of itself: version, ABI, the folder of its packages, and needed ones it lacks."""

    version: str
    abi: str
    packages: Path
    missing: tuple[str, ...]

    @property
    def is_old(self) -> bool:
        """True if the server's code does not run on it."""
        return tuple(map(int, self.version.split(".")[:2])) < OLDEST


def environment_with(python: Path, refuse: Refuse) -> ProcessEnvironment:
    """Return the environment of an interpreter, which is run once for that.

    Raises the ServingError of `refuse(reason)`, where the reason begins with a verb ("has Python 3.10 ..."), if the
    server's code cannot run in it.
    """
    interpreter = _inspected(python, refuse)
    ours = platform.python_version()
    if interpreter.is_old:
        oldest = ".".join(map(str, OLDEST))
        raise refuse(f"has Python {interpreter.version}; the server, on Python {ours}, needs {oldest} or later in it")
    same = interpreter.abi == sysconfig.get_config_var("SOABI")
    missing = [name for name in interpreter.missing if name not in _PURE]
    if missing and not same:
        packages = " ".join(_NEEDED[name] for name in missing)
        raise refuse(
            f"has Python {interpreter.version}, and the server Python {ours}, whose packages it cannot import. "
            f"It lacks {', '.join(_NEEDED[name] for name in missing)}: {python} -m pip install {packages}, "
            f"or create it with Python {'.'.join(ours.split('.')[:2])}"
        )
    lent = {name: _folder_of(name) for name in interpreter.missing if name in _PURE}
    return replace(of_interpreter(python, same, lent), packages=interpreter.packages)


def replaced(packages: Path) -> list[str]:
    """Return the server's packages that have another version in an environment, with both versions.

    `packages` is the folder of the environment's packages.
    """
    stand_ins = []
    for name in _OUTRANKED:
        other = next(iter(distributions(name=name, path=[str(packages)])), None)
        if other is not None and other.version != (own := version(name)):
            stand_ins.append(f"{name} {other.version} for {own}")
    return stand_ins


def _inspected(python: Path, refuse: Refuse) -> Interpreter:
    command = [str(python), "-I", str(_PROBE), *_NEEDED]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=_SECONDS, check=True
        )
        report = json.loads(done.stdout)
        return Interpreter(report["version"], report["abi"] or "", Path(report["packages"]), tuple(report["missing"]))
    except subprocess.CalledProcessError as error:
        last = (error.stderr.strip().splitlines() or [f"status {error.returncode}"])[-1]
        raise refuse(f"has an interpreter that fails: {python}: {last}") from error
    except (OSError, subprocess.TimeoutExpired, ValueError, KeyError) as error:
        raise refuse(f"has an interpreter that cannot be run: {error}") from error


def _folder_of(package: str) -> str:
    """Return the folder that this process imports a package from."""
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError(f"No module named {package!r}", name=package)
    return str(Path(next(iter(spec.submodule_search_locations))).parent)
