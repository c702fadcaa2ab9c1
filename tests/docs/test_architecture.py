"""The pages about the code name modules that exist, as do the stops of a resource and of a request on their way."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "architecture.md").read_text()
PAGES = ["architecture.md", "explanation/control-plane.md", "explanation/data-plane.md", "glossary.md", "gpu.md"]
GLOSSARY = "".join((ROOT / "docs" / name).read_text() for name in ("glossary.md", "glossary-server.md"))
DATA_PLANE = (ROOT / "docs" / "explanation" / "data-plane.md").read_text()
WALKS = re.split(r"^##+ One (\w+) on its way$", TEXT + DATA_PLANE, flags=re.MULTILINE)[1:]
STOPS = {
    name: re.findall(r"^\| (\d+) \| `([\w/.]+\.py)` `([\w.]+)` \|", walk, re.MULTILINE)
    for name, walk in zip(WALKS[::2], WALKS[1::2], strict=True)
}
FOLDERS = (".", "operator/argosy", "runtime", *(f"runtime/argosy_{part}" for part in ("runtime", "agent", "builder")))


def file_of(module: str) -> Path | None:
    """Return the file of a module as the text gives it: from the repository's root, or from a package's."""
    return next((ROOT / folder / module for folder in FOLDERS if (ROOT / folder / module).is_file()), None)


@pytest.mark.parametrize(
    ("walk", "fewest", "most"), [("resource", 15, 20), ("request", 15, 18), ("chat", 10, 14), ("weight", 12, 15)]
)
def test_a_walk_has_few_stops(walk: str, fewest: int, most: int) -> None:
    stops = STOPS[walk]
    assert [int(number) for number, _, _ in stops] == list(range(1, len(stops) + 1))
    assert fewest <= len(stops) <= most


@pytest.mark.parametrize(("module", "name"), sorted({stop[1:] for stops in STOPS.values() for stop in stops}))
def test_every_stop_is_there(module: str, name: str) -> None:
    file = file_of(module)
    assert file is not None, module
    scope: list[ast.stmt] = ast.parse(file.read_text()).body
    for part in name.split("."):
        defined = {
            node.name: node for node in scope if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        }
        assert part in defined, f"{module} has no {name}"
        scope = defined[part].body


@pytest.mark.parametrize("page", PAGES)
def test_every_module_is_there(page: str) -> None:
    modules = set(re.findall(r"`([\w/]+/[\w]+\.py)`", (ROOT / "docs" / page).read_text()))
    assert modules
    assert {module for module in modules if file_of(module) is None} == set()


@pytest.mark.parametrize(("heading", "folder"), [("operator", "operator/argosy"), ("server", "runtime/argosy_runtime")])
def test_every_package_has_a_row(heading: str, folder: str) -> None:
    _, _, section = TEXT.partition(f"## The {heading}\n")
    named = set(re.findall(r"`(\w+)/", section.partition("\n### ")[0]))
    assert {package.parent.name for package in (ROOT / folder).glob("*/__init__.py")} <= named


def test_the_glossaries_have_every_term_once() -> None:
    terms = [term for term in re.findall(r"^\| ([^|]+) \|", GLOSSARY, re.MULTILINE) if term not in ("term", "---")]
    assert len(terms) > 40
    assert sorted(terms) == sorted(set(terms))
