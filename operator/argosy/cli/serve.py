"""`argosy serve`: the inference server, with tritonserver's flags."""

import os
import sys
from importlib.util import find_spec

import typer

NEEDED = ("httptools", "ml_dtypes", "orjson", "pynvml", "uvloop")


def serve(context: typer.Context) -> None:
    """Serve a model repository. Takes tritonserver's flags: argosy serve --model-repository=PATH …"""
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        typer.echo(f"argosy serve needs {', '.join(missing)}: pip install 'argosy[runtime]'", err=True)
        raise typer.Exit(1)
    # In this process' place: a server has no use for what the command line has imported.
    os.execv(sys.executable, [sys.executable, "-m", "argosy_runtime.server", *context.args])
