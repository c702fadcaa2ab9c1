"""`argosy monitoring`: the chart's rules and dashboards are those of the code."""

from pathlib import Path

import pytest
import typer

from argosy.cli.generated import MONITORING_FOLDER, monitoring
from argosy.render.monitoring.files import monitoring_files

REPOSITORY = Path(__file__).parents[3]


def test_the_charts_files_are_current() -> None:
    monitoring(check=True, output=REPOSITORY / MONITORING_FOLDER)


def test_what_is_written_passes_the_check_and_drift_does_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / "argosy-former.json").write_text("{}")
    monitoring(output=tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {*monitoring_files(), "notes.txt"}
    monitoring(check=True, output=tmp_path)
    rules = tmp_path / "rules.yaml"
    rules.write_text(rules.read_text().replace("> 0.001", "> 0.01"))
    capsys.readouterr()
    with pytest.raises(typer.Exit) as stopped:
        monitoring(check=True, output=tmp_path)
    assert stopped.value.exit_code == 1
    reported = capsys.readouterr()
    assert "> 0.01" in reported.out
    assert "run `argosy monitoring`" in reported.err
