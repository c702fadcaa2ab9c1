"""`argosy monitoring`: writes the alerts, recording rules and dashboards of the chart, or says where they differ."""

from pathlib import Path
from typing import Annotated

import typer

from argosy.cli.generated import Generated
from argosy.render.monitoring.files import monitoring_files

FOLDER = Path("charts/argosy/files/monitoring")


def monitoring(
    check: Annotated[
        bool, typer.Option("--check", help="Write nothing; exit with 1 and a diff if a file is out of date.")
    ] = False,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The folder of rules.yaml and the dashboards.")
    ] = FOLDER,
) -> None:
    """Generate Prometheus's rules and Grafana's dashboards from the code."""
    files = Generated(monitoring_files(), "argosy-*.json", "operator/argosy/render/monitoring", "argosy monitoring")
    files.check([output]) if check else files.write([output])
