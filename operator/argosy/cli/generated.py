"""Files that are generated from code and committed: written, or held against what would be written."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import unified_diff
from pathlib import Path

import typer


@dataclass(frozen=True, slots=True)
class Generated:
    """`files` by name. What else in a folder has a name like `pattern` was generated once, and goes.

    `source`: what they are made from, and `command` what makes them, in words.
    """

    files: Mapping[str, str]
    pattern: str
    source: str
    command: str

    def write(self, folders: Iterable[Path]) -> None:
        """Write them into each folder."""
        for folder in folders:
            folder.mkdir(parents=True, exist_ok=True)
            for stale in self._stale(folder):
                stale.unlink()
            for name, text in self.files.items():
                (folder / name).write_text(text, encoding="utf-8")
                typer.echo(f"wrote {folder / name}")

    def check(self, folders: Iterable[Path]) -> None:
        """Show what differs in each folder. Raises typer.Exit with 1 where something does."""
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
    found = path.read_text(encoding="utf-8") if path.exists() else ""
    lines = unified_diff(found.splitlines(), text.splitlines(), str(path), f"{path} (generated)", lineterm="")
    return list(lines)
