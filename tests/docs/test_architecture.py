"""The architecture names what is there: every module, and every stop of a resource and of a request on their way."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "architecture.md").read_text()
GLOSSARY = (ROOT / "docs" / "glossary.md").read_text()
REQUEST = "### One request on its way"
RESOURCE_STOPS, REQUEST_STOPS = (
    re.findall(r"^\| (\d+) \| `([\w/.]+\.py)` `([\w.]+)` \|", part, re.MULTILINE) for part in TEXT.split(REQUEST)
)
ROOTS = (ROOT, ROOT / "operator" / "argosy", ROOT / "runtime" / "argosy_runtime", ROOT / "runtime" / "argosy_agent")


def found(module: str) -> Path | None:
    """Return the file of a module as the text gives it: from the repository's root, or from a package's."""
    return next((root / module for root in ROOTS if (root / module).is_file()), None)


@pytest.mark.parametrize(("stops", "most"), [(RESOURCE_STOPS, 20), (REQUEST_STOPS, 18)], ids=["resource", "request"])
def test_a_walk_has_few_stops(stops: list[tuple[str, str, str]], most: int) -> None:
    assert [int(number) for number, _, _ in stops] == list(range(1, len(stops) + 1))
    assert 15 <= len(stops) <= most


@pytest.mark.parametrize(("module", "name"), [stop[1:] for stop in RESOURCE_STOPS + REQUEST_STOPS])
def test_every_stop_is_there(module: str, name: str) -> None:
    file = found(module)
    assert file is not None, module
    scope: list[ast.stmt] = ast.parse(file.read_text()).body
    for part in name.split("."):
        defined = {
            each.name: each for each in scope if isinstance(each, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        }
        assert part in defined, f"{module} has no {name}"
        scope = defined[part].body


def test_every_module_is_there() -> None:
    control_plane, _, _ = TEXT.partition("## The data plane")
    modules = {each for each in re.findall(r"`([\w/]+/[\w]+\.py)`", control_plane) if not each.startswith("tests/")}
    assert modules
    assert {each for each in modules if found(each) is None} == set()


def test_the_glossary_has_every_term_once() -> None:
    terms = [term for term in re.findall(r"^\| ([^|]+) \|", GLOSSARY, re.MULTILINE) if term not in ("term", "---")]
    assert len(terms) > 40
    assert sorted(terms) == sorted(set(terms))
