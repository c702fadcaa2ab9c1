"""`argosy crds`: writes, checks, and finds what differs. The committed folder is current."""

from pathlib import Path

import pytest
import typer

from argosy.api.crd.crds import crd_files
from argosy.cli.generated import CRD_FOLDERS, crds

REPOSITORY = Path(__file__).parents[3]


def test_the_committed_crds_and_the_charts_copy_are_current() -> None:
    crds(check=True, output=[REPOSITORY / folder for folder in CRD_FOLDERS])


def test_what_is_written_passes_the_check(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    crds(output=[tmp_path / "new"])
    assert {path.name for path in (tmp_path / "new").iterdir()} == set(crd_files())
    crds(check=True, output=[tmp_path / "new"])
    assert "is up to date" in capsys.readouterr().out


def test_drift_is_shown_and_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    crds(output=[tmp_path])
    path = tmp_path / "argosy.dev_ensembles.yaml"
    path.write_text(path.read_text().replace("aens", "ens"))
    (tmp_path / "argosy.dev_oldkinds.yaml").write_text("")
    capsys.readouterr()
    with pytest.raises(typer.Exit) as stopped:
        crds(check=True, output=[tmp_path])
    assert stopped.value.exit_code == 1
    out = capsys.readouterr().out
    assert "-    - ens" in out
    assert "+    - aens" in out
    assert "argosy.dev_oldkinds.yaml is generated from nothing" in out
    assert "inferencemodels" not in out


def test_files_of_former_kinds_are_removed(tmp_path: Path) -> None:
    (tmp_path / "argosy.dev_oldkinds.yaml").write_text("")
    (tmp_path / "kustomization.yaml").write_text("")
    crds(output=[tmp_path])
    assert (tmp_path / "kustomization.yaml").exists()
    assert not (tmp_path / "argosy.dev_oldkinds.yaml").exists()


def test_a_missing_folder_is_drift(tmp_path: Path) -> None:
    with pytest.raises(typer.Exit):
        crds(check=True, output=[tmp_path / "none"])


def test_every_folder_is_written_and_every_one_that_differs_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    crds()
    crds(check=True)
    for folder in CRD_FOLDERS:
        (folder / "argosy.dev_ensembles.yaml").write_text("")
    capsys.readouterr()
    with pytest.raises(typer.Exit):
        crds(check=True)
    reported = capsys.readouterr().err
    assert all(f"{folder} differs from the models" in reported for folder in CRD_FOLDERS)
