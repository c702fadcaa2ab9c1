"""`argosy serve`: run the inference server, with tritonserver's flags."""

import os
import sys
from importlib.util import find_spec

import typer

NEEDED = ("httptools", "ml_dtypes", "orjson", "pynvml", "uvloop")


def serve(context: typer.Context) -> None:
    """Serve a model repository. It takes tritonserver's flags, such as --model-repository=PATH."""
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        typer.echo(f"argosy serve needs {', '.join(missing)}: pip install 'argosy[runtime]'", err=True)
        raise typer.Exit(1)
    # The server replaces this process, and with it everything that the command line has imported.
    os.execv(sys.executable, [sys.executable, "-m", "argosy_runtime.server", *context.args])
