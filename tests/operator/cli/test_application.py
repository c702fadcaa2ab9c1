"""Which subcommands there are, how help shows them, and that one of them does not load the others."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from argosy.cli.application import COMMANDS, GROUPS, application

ROOT = Path(__file__).parents[3]
INNER = {
    "engines": [("list",), ("gc",)],
    "rollout": [(name,) for name in ("status", "history", "undo", "pause", "resume", "promote", "retry")],
}
"""The subcommands of subcommands."""
ROLLOUT = [(name,) for name in ("status", "history", "undo", "pause", "resume", "promote", "retry")]


def help_of(*command: str) -> str:
    return CliRunner().invoke(application(), [*command, "--help"], terminal_width=120).output


def test_help_lists_commands_by_group() -> None:
    panels = re.split(r"╭─ (.*?) ─+╮", help_of())
    listed = {
        panels[index]: [line.split()[1] for line in panels[index + 1].splitlines() if re.match(r"│ \w", line)]
        for index in range(1, len(panels), 2)
    }
    del listed["Options"]
    assert listed == {group: list(modules) for group, modules in GROUPS.items()}


def test_every_command_has_an_example_of_files_that_exist() -> None:
    for name in set(COMMANDS) - {"serve"}:
        commands = [(name, *inner) for inner in INNER.get(name, [()])]
        for command in commands:
            text = " ".join(help_of(*command).split())
            assert f"argosy {' '.join(command)} " in text.partition("Example")[2], command
            assert [path for path in re.findall(r"examples/[\w./-]+", text) if not (ROOT / path).exists()] == []


def test_a_single_subcommand_keeps_its_name() -> None:
    assert CliRunner().invoke(application(["crds"]), ["crds", "--help"]).exit_code == 0


@pytest.mark.parametrize("heavy", ["pydantic", "kubernetes", "kopf", "numpy"])
def test_serving_does_not_load_what_the_others_need(heavy: str) -> None:
    serving = "import sys; from argosy.cli.application import application; application(['serve'])"
    subprocess.run([sys.executable, "-c", f"{serving}; assert {heavy!r} not in sys.modules"], check=True)
