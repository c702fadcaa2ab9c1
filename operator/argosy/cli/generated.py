"""`argosy crds`: write files that are generated from code, or show where they are outdated."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import unified_diff
from pathlib import Path
from typing import Annotated

import typer

from argosy.api.crd.crds import crd_files

CRD_FOLDERS = (Path("crds"), Path("charts/argosy/files/crds"))
"""The repository's CRDs, and the chart's copy of them: Helm reads no file outside a chart."""
Check = Annotated[bool, typer.Option("--check", help="Write nothing; exit with 1 and a diff if a file is out of date.")]


def crds(
    check: Check = False,
    output: Annotated[
        list[Path] | None,
        typer.Option(
            "--output",
            "-o",
            help="A folder to write the CRDs to; may be repeated. Default: the repository's, and the chart's copy.",
            show_default=", ".join(map(str, CRD_FOLDERS)),
        ),
    ] = None,
) -> None:
    """Generate the CustomResourceDefinitions from the models."""
    files = Generated(crd_files(), "argosy.dev_*.yaml", "the models", "argosy crds")
    folders = output or CRD_FOLDERS
    files.check(folders) if check else files.write(folders)


@dataclass(frozen=True, slots=True)
class Generated:
    """Generated files by name. Other files of a folder whose names match `pattern` are outdated and are removed.

    `source` names what they are generated from, and `command` the command that generates them, for messages.
    """

    files: Mapping[str, str]
    pattern: str
    source: str
    command: str

    def write(self, folders: Iterable[Path]) -> None:
        """Write the files into each folder."""
        for folder in folders:
            folder.mkdir(parents=True, exist_ok=True)
            for stale in self._stale(folder):
                stale.unlink()
            for name, text in self.files.items():
                (folder / name).write_text(text, encoding="utf-8")
                typer.echo(f"wrote {folder / name}")

    def check(self, folders: Iterable[Path]) -> None:
        """Print the differences of each folder. Raises typer.Exit with status 1 if there are any."""
        outdated = [folder for folder in folders if not self._is_current(folder)]
        if outdated:
            raise typer.Exit(1)

    def _is_current(self, folder: Path) -> bool:
        differences = [line for name, text in self.files.items() for line in _difference(folder / name, text)]
        differences += [f"{path} is generated from nothing; remove it" for path in self._stale(folder)]
        if not differences:
            typer.echo(f"{folder} is up to date")
            return True
        typer.echo("\n".join(differences))
        typer.echo(f"{folder} differs from {self.source}; run `{self.command}`", err=True)
        return False

    def _stale(self, folder: Path) -> list[Path]:
        return sorted(path for path in folder.glob(self.pattern) if path.name not in self.files)


def _difference(path: Path, text: str) -> list[str]:
    current = path.read_text(encoding="utf-8") if path.exists() else ""
    lines = unified_diff(current.splitlines(), text.splitlines(), str(path), f"{path} (generated)", lineterm="")
    return list(lines)
