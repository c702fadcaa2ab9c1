"""`argosy crds`: writes the CRDs' files, or says where they differ from the models."""

from pathlib import Path
from typing import Annotated

import typer

from argosy.api.crd.crds import crd_files
from argosy.cli.generated import Generated

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
    files = Generated(crd_files(), "argosy.dev_*.yaml", "the models", "argosy crds")
    folders = output or FOLDERS
    files.check(folders) if check else files.write(folders)
