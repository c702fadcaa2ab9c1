"""`argosy crds`: writes the CRDs' files, or says where they differ from the models."""

from difflib import unified_diff
from pathlib import Path
from typing import Annotated

import typer

from argosy.api.crds import crd_files


def crds(
    check: Annotated[
        bool, typer.Option("--check", help="Write nothing; exit with 1 and a diff if a file is out of date.")
    ] = False,
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder of the CRDs.")] = Path("crds"),
) -> None:
    """Generate the CustomResourceDefinitions from the models."""
    files = crd_files()
    if check:
        _check(output, files)
        return
    output.mkdir(parents=True, exist_ok=True)
    for stale in _stale(output, files):
        stale.unlink()
    for name, text in files.items():
        (output / name).write_text(text, encoding="utf-8")
        typer.echo(f"wrote {output / name}")


def _check(folder: Path, files: dict[str, str]) -> None:
    differences = [line for name, text in files.items() for line in _difference(folder / name, text)]
    differences += [f"{path} is generated from nothing; remove it" for path in _stale(folder, files)]
    if not differences:
        typer.echo(f"{folder} is up to date")
        return
    typer.echo("\n".join(differences))
    typer.echo(f"{folder} differs from the models; run `argosy crds`", err=True)
    raise typer.Exit(1)


def _difference(path: Path, text: str) -> list[str]:
    found = path.read_text(encoding="utf-8") if path.exists() else ""
    lines = unified_diff(found.splitlines(), text.splitlines(), str(path), f"{path} (generated)", lineterm="")
    return list(lines)


def _stale(folder: Path, files: dict[str, str]) -> list[Path]:
    """Generated files of kinds that there are no more."""
    return sorted(path for path in folder.glob("argosy.dev_*.yaml") if path.name not in files)
