"""In which form the modules run that mypyc compiles: compiled where a compiler is there, or their sources."""

import ast
import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def _files() -> list[Path]:
    listed = "import hatch_build; print(*hatch_build.modules())"
    done = subprocess.run([sys.executable, "-c", listed], cwd=ROOT, capture_output=True, text=True, check=True)
    return [Path(file) for file in done.stdout.split()]


def _suffixes() -> set[str]:
    names = [".".join(file.with_suffix("").parts) for file in _files()]
    return {Path(importlib.import_module(name).__file__ or "").suffix for name in names}


@pytest.mark.skipif("ARGOSY_FORM" not in os.environ, reason="make test says which form it runs: ARGOSY_FORM")
def test_the_build_that_is_meant_is_the_one_that_runs() -> None:
    assert _suffixes() == {".so" if os.environ["ARGOSY_FORM"] == "compiled" else ".py"}


def test_every_listed_module_is_there() -> None:
    assert _files()
    assert [file for file in _files() if not (ROOT / "runtime" / file).is_file()] == []


@pytest.mark.parametrize("file", _files(), ids=str)
def test_one_name_holds_one_kind_of_exception(file: Path) -> None:
    """A compiled variable has one type: that of its first handler, and the second one would raise TypeError."""
    for function in ast.walk(ast.parse((ROOT / "runtime" / file).read_text())):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            kinds: dict[str, set[str]] = {}
            for item in ast.walk(function):
                if isinstance(item, ast.ExceptHandler) and item.name and item.type:
                    kinds.setdefault(item.name, set()).add(ast.unparse(item.type))
            assert all(len(kind) == 1 for kind in kinds.values()), f"{file}:{function.lineno} {kinds}"


@pytest.mark.parametrize("file", _files(), ids=str)
def test_no_coroutine_waits_while_it_handles_an_exception(file: Path) -> None:
    """A compiled coroutine has no exception state of its own: what it raises on may be another coroutine's error."""
    lines: list[int] = []
    for node in ast.walk(ast.parse((ROOT / "runtime" / file).read_text())):
        handling: list[ast.stmt] = []
        if isinstance(node, ast.Try):
            handling = [*node.finalbody, *(statement for handler in node.handlers for statement in handler.body)]
        elif isinstance(node, ast.AsyncWith):
            lines.append(node.lineno)
        lines += [item.lineno for statement in handling for item in ast.walk(statement) if isinstance(item, ast.Await)]
    assert lines == [], "leave the handler, then await, then raise what was caught"


def test_nothing_uncompiled_inherits_from_a_compiled_class() -> None:
    """Python would refuse to make one: at the first request, not at the import."""
    listed, sources = {str(file) for file in _files()}, ROOT / "runtime"
    classes = [
        (str(path.relative_to(sources)), node)
        for path in sources.glob("argosy_runtime/**/*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef)
    ]
    compiled = {node.name for file, node in classes if file in listed and not _is_open(node)}
    own = {(file, node.name) for file, node in classes}
    heirs = [
        f"{file}: {node.name}({base})"
        for file, node in classes
        for base in _bases(node)
        if file not in listed and base in compiled and (file, base) not in own
    ]
    assert heirs == []


def _bases(node: ast.ClassDef) -> list[str]:
    return [ast.unparse(base).partition("[")[0].rpartition(".")[2] for base in node.bases]


def _is_open(node: ast.ClassDef) -> bool:
    """Return whether other classes may inherit from it: protocols, and what inherits from classes of Python's own."""
    return any(base == "Protocol" or base.endswith(("Error", "Exception", "Enum")) for base in _bases(node))


@pytest.mark.parametrize("change", ["source", "list"])
def test_compiled_modules_of_other_sources_go(tmp_path: Path, change: str) -> None:
    package = tmp_path / "runtime" / "argosy_runtime"
    package.mkdir(parents=True)
    (tmp_path / "hatch_build.py").write_text((ROOT / "hatch_build.py").read_text())
    (package / "__init__.py").touch()
    (package / "one.py").write_text("VALUE = 1\n")
    _list(tmp_path, "one")
    stamp = "import hatch_build as h; h.STAMP.parent.mkdir(); h.STAMP.write_text(h.fingerprint()); print(h.SUFFIX)"
    suffix = _run(tmp_path, "-c", stamp).strip()
    compiled = (package / "one.py").with_suffix(suffix)
    compiled.touch()
    _run(tmp_path, "hatch_build.py", "stale")
    assert compiled.exists()
    if change == "source":
        (package / "one.py").write_text("VALUE = 2\n")
    else:
        _list(tmp_path, "one", "two")
    _run(tmp_path, "hatch_build.py", "stale")
    assert not compiled.exists()


def test_without_a_compiler_nothing_is_compiled_and_nothing_old_stays(tmp_path: Path) -> None:
    package = tmp_path / "runtime" / "argosy_runtime"
    package.mkdir(parents=True)
    (tmp_path / "hatch_build.py").write_text((ROOT / "hatch_build.py").read_text())
    (package / "one.py").write_text("VALUE = 1\n")
    old = package / "one.cpython-311-x86_64-linux-gnu.so"
    old.touch()
    _list(tmp_path, "one")
    _run(tmp_path, "hatch_build.py", ARGOSY_COMPILE="0")
    assert not old.exists()
    with pytest.raises(subprocess.CalledProcessError) as refused:
        _run(tmp_path, "hatch_build.py", ARGOSY_COMPILE="1", PATH="")
    assert "no C compiler" in refused.value.stderr


def _list(root: Path, *names: str) -> None:
    files = [f"argosy_runtime/{name}.py" for name in names]
    (root / "pyproject.toml").write_text(f"[tool.hatch.build.targets.wheel.hooks.custom]\ncompiled = {files}\n")


def _run(root: Path, *arguments: str, **environment: str) -> str:
    command = [sys.executable, *arguments]
    env = {**os.environ, **environment}
    return subprocess.run(command, cwd=root, env=env, capture_output=True, text=True, check=True).stdout
