"""`argosy crds`: writes the CRDs' files, or says where they differ from the models."""

from difflib import unified_diff
from pathlib import Path
from typing import Annotated

import typer

from argosy.api.crd.crds import crd_files

FOLDERS = (Path("crds"), Path("charts/argosy/files/crds"))
"""The repository's CRDs, and the chart's copy of them: Helm reads no file outside a chart."""


def crds(
    check: Annotated[
        bool, typer.Option("--check", help="Write nothing; exit with 1 and a diff if a file is out of date.")
    ] = False,
    output: Annotated[
        list[Path] | None,
        typer.Option(
            "--output",
            "-o",
            help="A folder of the CRDs; may be repeated. Default: the repository's, and the chart's copy.",
            show_default=", ".join(map(str, FOLDERS)),
        ),
    ] = None,
) -> None:
    """Generate the CustomResourceDefinitions from the models."""
    files = crd_files()
    folders = output or FOLDERS
    if not check:
        for folder in folders:
            _write(folder, files)
        return
    outdated = [folder for folder in folders if not _is_current(folder, files)]
    if outdated:
        raise typer.Exit(1)


def _write(folder: Path, files: dict[str, str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for stale in _stale(folder, files):
        stale.unlink()
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
        typer.echo(f"wrote {folder / name}")


def _is_current(folder: Path, files: dict[str, str]) -> bool:
    differences = [line for name, text in files.items() for line in _difference(folder / name, text)]
    differences += [f"{path} is generated from nothing; remove it" for path in _stale(folder, files)]
    if not differences:
        typer.echo(f"{folder} is up to date")
        return True
    typer.echo("\n".join(differences))
    typer.echo(f"{folder} differs from the models; run `argosy crds`", err=True)
    return False


def _difference(path: Path, text: str) -> list[str]:
    found = path.read_text(encoding="utf-8") if path.exists() else ""
    lines = unified_diff(found.splitlines(), text.splitlines(), str(path), f"{path} (generated)", lineterm="")
    return list(lines)


def _stale(folder: Path, files: dict[str, str]) -> list[Path]:
    """Generated files of kinds that there are no more."""
    return sorted(path for path in folder.glob("argosy.dev_*.yaml") if path.name not in files)
