"""Every rule of docs/security.md names a test that is there."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCUMENT = ROOT / "docs" / "security.md"
SECTIONS = ("Client", "Model author", "Pool administrator", "Operator", "Builder")


def rules() -> list[tuple[str, str]]:
    """Return the rows of the tables of rules: the rule, and the cell that names its tests."""
    listed = []
    for section in re.split(r"^## ", DOCUMENT.read_text(), flags=re.M)[1:]:
        rows = [line.strip("| ").rsplit(" | ", 1) for line in section.splitlines() if line.startswith("| ")]
        listed += [(rule, tests) for rule, tests in rows if rule != "Rule"]
    return listed


def test_every_role_has_a_section() -> None:
    assert tuple(re.findall(r"^## (.+)$", DOCUMENT.read_text(), flags=re.M)) == SECTIONS


def test_every_rule_names_a_test_that_is_there() -> None:
    for rule, cell in rules():
        named = re.findall(r"`([\w/]+\.py)::(test_\w+)`", cell)
        assert named, rule
        for file, test in named:
            assert re.search(rf"def {test}\(", (ROOT / file).read_text()), f"{rule}: {file}::{test}"
