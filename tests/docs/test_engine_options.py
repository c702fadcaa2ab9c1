"""The options in docs/engines.md are those of the tables, each with its values and what holds without it."""

from pathlib import Path

import pytest

from argosy_agent.contract.engine_options.checks import TABLES
from argosy_agent.contract.engine_options.option import Kind, Option
from argosy_agent.contract.engine_options.precisions import PRECISIONS

PAGE = Path(__file__).parents[2] / "docs/engines.md"


def row(name: str, option: Option) -> str:
    """Return the line of an option in the page."""
    default = str(option.default).lower() if isinstance(option.default, bool) else str(option.default)
    values = option.values() + (", null" if option.nullable else "")
    return f"| `{name}` | {values} | {default or 'unset'} | {option.description} |"


def rows(table: dict[str, Option]) -> list[str]:
    """Return the lines of a table; a map's own fields follow it."""
    lines = []
    for name, option in table.items():
        lines.append(row(name, option))
        if option.kind is Kind.MAP:
            lines += [row(f"{name}.{key}", field) for key, field in option.fields.items()]
    return lines


@pytest.mark.parametrize("builder", TABLES)
def test_every_option_of_a_builder_stands_in_the_page(builder: str) -> None:
    _, _, section = PAGE.read_text(encoding="utf-8").partition(f"\n### `{builder}`\n")
    lines = [line for line in section.partition("\n#")[0].splitlines() if line.startswith("| `")]
    expected = rows(dict(TABLES[builder]))
    assert lines == expected, "write:\n" + "\n".join(expected)


def test_the_page_says_which_builder_makes_which_precision() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for builder, precisions in PRECISIONS.items():
        assert f"| `{builder}` | {', '.join(precisions)} |" in text
