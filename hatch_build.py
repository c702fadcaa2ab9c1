"""Compiles modules by mypyc: for a wheel as hatchling's build hook, in the sources by `python hatch_build.py`.

The list of modules is in pyproject.toml, at `tool.hatch.build.targets.wheel.hooks.custom`. They behave the same without
compilation, only slower, so without a C compiler nothing is compiled. `ARGOSY_COMPILE=1` makes a missing compiler an
error, `ARGOSY_COMPILE=0` compiles nothing.

    python hatch_build.py          compiles into runtime/, next to the sources, unless that is up to date
    python hatch_build.py stale    removes compiled modules that are out of date
    python hatch_build.py form     prints "compiled" if the compiled modules are up to date, else "pure"
    python hatch_build.py pure     links the packages without compiled modules into build/pure, for PYTHONPATH
"""

import contextlib
import hashlib
import os
import shutil
import sys
import sysconfig
import tempfile
import tomllib
from pathlib import Path
from typing import Any

try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
except ImportError:  # run by hand, without hatchling
    BuildHookInterface = object

ROOT = Path(__file__).resolve().parent
SOURCES = ROOT / "runtime"
STAMP = ROOT / "build" / "compiled.sha256"
PURE = ROOT / "build" / "pure"
SUFFIX = sysconfig.get_config_var("EXT_SUFFIX") or ".so"
_GROUP = "argosy"
_MYPY = [
    # What a dependency's types are must not depend on whether it is installed where this runs.
    "--no-site-packages",
    "--ignore-missing-imports",
    "--follow-imports=silent",
    "--config-file=",
]


class CustomBuildHook(BuildHookInterface):  # type: ignore[misc]  # hatchling is not there for mypy
    """Adds compiled modules to a wheel. An editable installation uses those next to the sources."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile the modules and add them to the wheel."""
        if version == "editable" or not can_compile():
            return
        folder = Path(tempfile.mkdtemp(prefix="argosy-compiled-"))
        built = compiled(modules(), folder)
        build_data["pure_python"] = False
        build_data["infer_tag"] = True
        build_data["force_include"].update({str(path): str(path.relative_to(folder)) for path in built})


def modules() -> list[str]:
    """Return the files to compile, below runtime/."""
    hooks = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]["hooks"]
    return list(hooks["custom"]["compiled"])


def can_compile() -> bool:
    """Return whether to compile here. Raises SystemExit if compilation is required and not possible."""
    choice = os.environ.get("ARGOSY_COMPILE", "")
    compiler = (sysconfig.get_config_var("CC") or "cc").split()[0]
    path = shutil.which(compiler) or shutil.which("cc")
    headers = Path(sysconfig.get_path("include"), "Python.h").is_file()
    if choice != "0" and path and headers:
        return True
    lacking = "ARGOSY_COMPILE=0" if choice == "0" else "no C compiler" if not path else "no headers of Python's"
    if choice == "1":
        raise SystemExit(f"ARGOSY_COMPILE=1, but there is {lacking}")
    print(f"{lacking}: the server's modules stay uncompiled, which is slower", file=sys.stderr)
    return False


def compiled(files: list[str], folder: Path) -> list[Path]:
    """Compile `files` of runtime/ into `folder`, laid out as packages. Return the extension modules."""
    from mypyc.build import mypycify
    from setuptools import Distribution

    os.environ.setdefault("CC", shutil.which((sysconfig.get_config_var("CC") or "cc").split()[0]) or "cc")
    with tempfile.TemporaryDirectory() as scratch, contextlib.chdir(SOURCES):
        cache = f"--cache-dir={ROOT / 'build' / 'mypy'}"
        extensions = mypycify(
            [*_MYPY, cache, *files], opt_level="3", debug_level="0", group_name=_GROUP, target_dir=scratch
        )
        command = Distribution({"name": "argosy", "ext_modules": extensions}).get_command_obj("build_ext")
        command.build_lib, command.build_temp = str(folder), scratch
        command.ensure_finalized()
        command.run()
    return sorted(folder.rglob(f"*{SUFFIX}"))


def fingerprint() -> str:
    """Return a digest of the inputs of compilation: Python, the list of modules, the sources and this file."""
    digest = hashlib.sha256(f"{sys.version} {SUFFIX} {modules()}".encode())
    for path in [Path(__file__), *sorted(SOURCES.glob("argosy_runtime/**/*.py"))]:
        digest.update(f"{path.relative_to(ROOT)}".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def fresh() -> bool:
    """Return whether every module is compiled from the present sources."""
    built = all((SOURCES / file).with_suffix(SUFFIX).is_file() for file in modules())
    return built and STAMP.is_file() and STAMP.read_text() == fingerprint()


def remove() -> None:
    """Remove the compiled modules from the sources' folders."""
    STAMP.unlink(missing_ok=True)
    for path in SOURCES.rglob("*.so"):
        path.unlink(missing_ok=True)


def in_place() -> None:
    """Compile the modules next to their sources unless they are up to date; remove them if that is not possible."""
    if fresh():
        return
    remove()
    if not can_compile():
        return
    before = fingerprint()
    with tempfile.TemporaryDirectory() as scratch:
        for path in compiled(modules(), Path(scratch)):
            shutil.move(path, SOURCES / path.relative_to(scratch))
    STAMP.write_text(before)


def pure() -> None:
    """Link the packages of runtime/ into build/pure, each file a link to its source."""
    shutil.rmtree(PURE, ignore_errors=True)
    left_out = shutil.ignore_patterns("*.so", "__pycache__", "Dockerfile")
    shutil.copytree(SOURCES, PURE, ignore=left_out, copy_function=os.symlink)


if __name__ == "__main__":
    match sys.argv[1:]:
        case []:
            in_place()
        case ["stale"]:
            if not fresh():
                remove()
        case ["form"]:
            print("compiled" if fresh() else "pure")
        case ["pure"]:
            pure()
        case _:
            raise SystemExit(__doc__)
