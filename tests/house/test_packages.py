"""A package is small enough to be read as a list, with at most a dozen modules, and a module has at most 400 lines."""

from pathlib import Path

import pytest
from tests.house.words import ROOT

MOST = 12
MOST_LINES = 400
FOLDERS = ("operator", "runtime", "benchmarks")
PACKAGES = sorted({file.parent for folder in FOLDERS for file in (ROOT / folder).rglob("__init__.py")})


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: str(package.relative_to(ROOT)))
def test_a_package_has_at_most_a_dozen_modules(package: Path) -> None:
    modules = [file.stem for file in package.glob("*.py") if file.stem != "__init__"]
    assert len(modules) <= MOST, f"{len(modules)} modules: move some into sub-packages"


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_module_has_at_most_400_lines(folder: str) -> None:
    lengths = {path: len(path.read_text().splitlines()) for path in (ROOT / folder).rglob("*.py")}
    assert {str(path.relative_to(ROOT)): lines for path, lines in lengths.items() if lines > MOST_LINES} == {}
