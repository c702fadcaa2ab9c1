"""Flags of `argosy up` that are refused before anything starts."""

from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from argosy.cli.local.up import up


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--grpc-port=8000"], "--http-port and --grpc-port are both 8000: give each a number of its own"),
        (
            ["--grpc-port=9000", "--metrics-port=9000"],
            "--grpc-port and --metrics-port are both 9000: give each a number of its own",
        ),
        (["--timeout=5"], "--timeout has an effect only with --once: pass both, or leave out --timeout"),
    ],
)
def test_flags_that_do_not_fit_together_start_nothing(tmp_path: Path, flags: list[str], message: str) -> None:
    app = typer.Typer()
    app.command()(up)
    state = tmp_path / "state"
    result = CliRunner().invoke(app, [str(tmp_path), f"--state={state}", *flags])
    assert (result.exit_code, result.stderr.splitlines()) == (1, [message])
    assert not state.exists()
