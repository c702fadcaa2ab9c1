"""`argosy render`: faults of the input with their files, and nothing written then."""

from pathlib import Path
from shutil import copytree

import typer
from typer.testing import CliRunner

from argosy.cli.planning.render import render

EXAMPLE = Path(__file__).parents[3] / "examples" / "llama-70b"


def test_a_fault_between_resources_has_its_file_and_nothing_is_written(tmp_path: Path) -> None:
    example = Path(copytree(EXAMPLE, tmp_path / "example"))
    file = example / "ensemble.yaml"
    file.write_text(file.read_text().replace("- model: safety", "- model: safetty"))
    app = typer.Typer()
    app.command()(render)
    output = tmp_path / "out"
    for nodes in ([], ["--nodes", str(example / "nodes.yaml")]):
        result = CliRunner().invoke(app, ["-f", str(example), "-o", str(output), "--config-only", *nodes])
        assert result.exit_code == 1
        assert f"{file}: Ensemble default/chat-70b: spec.steps[2].model" in result.stderr
    assert not output.exists()


def test_a_setting_without_effect_is_named(tmp_path: Path) -> None:
    example = Path(copytree(EXAMPLE, tmp_path / "example"))
    file = example / "pool.yaml"
    unused = "  packing: {consolidate: 'Off', consolidateAfter: 5m}\n"
    file.write_text(file.read_text().replace("spec:\n", f"spec:\n{unused}", 1))
    app = typer.Typer()
    app.command()(render)
    nodes = ["--nodes", str(example / "nodes.yaml")]
    result = CliRunner().invoke(app, ["-f", str(example), "-o", str(tmp_path / "out"), "--config-only", *nodes])
    assert result.exit_code == 0
    assert "without effect in this release: spec.packing.consolidateAfter" in result.stderr
