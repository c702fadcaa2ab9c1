"""Which subcommands there are, and that one of them does not load the others."""

import subprocess
import sys

import pytest
from typer.testing import CliRunner

from argosy.cli.main import COMMANDS, application


def test_every_subcommand_is_told_of() -> None:
    told = CliRunner().invoke(application(), ["--help"]).output
    assert [name for name in COMMANDS if name not in told] == []


def test_a_single_subcommand_keeps_its_name() -> None:
    assert CliRunner().invoke(application(["crds"]), ["crds", "--help"]).exit_code == 0


@pytest.mark.parametrize("heavy", ["pydantic", "kubernetes", "kopf", "numpy"])
def test_serving_does_not_load_what_the_others_need(heavy: str) -> None:
    serving = "import sys; from argosy.cli.main import application; application(['serve'])"
    subprocess.run([sys.executable, "-c", f"{serving}; assert {heavy!r} not in sys.modules"], check=True)
