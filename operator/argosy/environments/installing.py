"""Installation of an engine's environment, whole or not at all, and its removal."""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import Final

from argosy_common.engine_folders import interpreter_in

from .errors import EnvironmentFailedError
from .inventory import BUILDS, Record, in_use, read_record
from .recipes import ENGINES, Alias, Recipe
from .running import Report, python_fails, run
from .tools import Tool, find_tool

_CHECK_SECONDS: Final = 300.0  # the first import of an engine on a slow disk


@dataclass(frozen=True, slots=True)
class Request:
    """An installation: `root` gets the link, `python` is the interpreter, or its version where uv is used."""

    recipe: Recipe
    root: Path
    python: str
    extra_indexes: tuple[str, ...] = ()
    again: bool = False


def install(request: Request, report: Report) -> tuple[Path, Record]:
    """Make an engine's environment, and return its link and its record. One of the same recipe is not made again.

    Two installations into one folder follow each other. Raises EnvironmentFailedError; what was installed before stays.
    """
    link = request.root / request.recipe.engine
    try:
        with _alone(request.root, report):
            present = read_record(link)
            if present is not None and not request.again and _suits(present, request):
                return link, present
            if link.exists() and not link.is_symlink():
                raise EnvironmentFailedError(f"{link} was not made by argosy engines install: remove it, or use --into")
            folder = _made(request, report)
            _replace_link(link, folder)
            _remove_unused(request.root)
    except OSError as error:
        raise EnvironmentFailedError(f"cannot install into {request.root}: {error}") from error
    record = read_record(link)
    if record is None:
        raise EnvironmentFailedError(f"{link} has lost its record while it was installed")
    return link, record


def uninstall(root: Path, engine: str) -> bool:
    """Remove an engine's environment. Return whether there was one.

    Raises EnvironmentFailedError where a process runs in it, and where something else has made it.
    """
    link = root / engine
    if not link.is_symlink() and not link.exists():
        return False
    try:
        with _alone(root, lambda line: None):
            if not link.is_symlink():
                raise EnvironmentFailedError(f"{link} was not made by argosy engines install; it stays")
            if in_use(link):
                raise EnvironmentFailedError(f"{link} is in use: unload the models of '{engine}' first")
            link.unlink()
            _remove_unused(root)
    except OSError as error:
        raise EnvironmentFailedError(f"cannot remove {link}: {error}") from error
    return True


def _suits(record: Record, request: Request) -> bool:
    recipe = request.recipe
    same = (record.engine, record.device, record.requirements) == (recipe.engine, recipe.device, recipe.requirements)
    return same and interpreter_in(request.root / recipe.engine) is not None


@contextmanager
def _alone(root: Path, report: Report) -> Iterator[None]:
    (root / BUILDS).mkdir(parents=True, exist_ok=True)
    with (root / BUILDS / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            report(f"waiting for another installation into {root}")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _made(request: Request, report: Report) -> Path:
    """Return the folder of a new, checked environment. Nothing of it stays where that fails."""
    recipe = request.recipe
    # At its last path from the start: scripts name their interpreter by it.
    folder = Path(tempfile.mkdtemp(prefix=f"{recipe.engine}-", dir=request.root / BUILDS))
    try:
        with tempfile.TemporaryDirectory() as scratch:
            tool = find_tool(request.python, request.extra_indexes, Path(scratch))
            report(f"1/4 creating an environment for {recipe.engine} ({recipe.device}): {folder}")
            folder.rmdir()
            run(tool.creating(folder), f"create an environment by {request.python}", report)
            report(f"2/4 installing {' '.join(recipe.requirements)} by {tool.name}")
            _install_packages(tool, folder, recipe, report)
        report(f"3/4 checking that {recipe.engine} starts")
        failure = python_fails(str(folder / "bin/python"), recipe.check, _CHECK_SECONDS)
        if failure:
            raise EnvironmentFailedError(f"{recipe.engine} was installed and does not start: {failure}")
        report("4/4 putting it into use")
        _recorded(folder, recipe).write(folder)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    folder.chmod(0o755)
    return folder


def _install_packages(tool: Tool, folder: Path, recipe: Recipe, report: Report) -> None:
    try:
        run(tool.installing(folder, recipe.requirements), f"install {recipe.engine}", report)
    except EnvironmentFailedError as error:
        raise EnvironmentFailedError(f"{error}\n{recipe.advice}" if recipe.advice else str(error)) from error
    python = str(folder / "bin/python")
    present = [name for name in recipe.optional if _distribution(folder, name) is not None]
    broken = [name for name in present if python_fails(python, f"import {name}", _CHECK_SECONDS)]
    if broken:
        run(tool.removing(folder, broken), f"remove {', '.join(broken)}", report)
        report(f"removed {', '.join(broken)}, which cannot be imported here and text does not need")
    if recipe.alias is not None:
        _give_second_name(folder, recipe.alias)


def _packages(folder: Path) -> Path:
    try:
        return next(folder.glob("lib/python3*/site-packages"))
    except StopIteration:
        raise EnvironmentFailedError(f"{folder} has no folder of packages") from None


def _distribution(folder: Path, name: str) -> Distribution | None:
    return next(iter(distributions(name=name, path=[str(_packages(folder))])), None)


def _give_second_name(folder: Path, alias: Alias) -> None:
    """Add a distribution without files, by which `importlib.metadata` finds the release under the second name."""
    real = _distribution(folder, alias.distribution)
    if real is None or _distribution(folder, alias.name) is not None:
        return
    version = f"{real.version.partition('+')[0]}+{alias.local_version}"
    described = _packages(folder) / f"{alias.name}-{version}.dist-info"
    described.mkdir()
    (described / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {alias.name}\nVersion: {version}\n")
    (described / "INSTALLER").write_text("argosy\n")


def _recorded(folder: Path, recipe: Recipe) -> Record:
    names = [requirement.partition("==")[0] for requirement in recipe.requirements]
    results = [(name, _distribution(folder, name)) for name in dict.fromkeys(["torch", *names])]
    packages = tuple(f"{name} {distribution.version}" for name, distribution in results if distribution is not None)
    python = _packages(folder).parent.name.removeprefix("python")
    return Record(recipe.engine, recipe.device, recipe.requirements, python, packages)


def _replace_link(link: Path, folder: Path) -> None:
    new = link.with_name(f".{link.name}.new")
    with suppress(FileNotFoundError):
        new.unlink()
    # Relative, so that the whole folder can be copied, as into an image.
    new.symlink_to(Path(BUILDS) / folder.name)
    os.replace(new, link)


def _remove_unused(root: Path) -> None:
    """Remove environments that no link leads to and no process runs in: former ones, and what a killed one left."""
    linked = {link.resolve() for link in _links(root)}
    for folder in (root / BUILDS).iterdir():
        made_here = folder.name.partition("-")[0] in ENGINES
        if made_here and folder.is_dir() and folder.resolve() not in linked and not in_use(folder):
            shutil.rmtree(folder, ignore_errors=True)


def _links(root: Path) -> Sequence[Path]:
    return [path for path in root.iterdir() if path.is_symlink()]
