"""`argosy serve`: the inference server, with tritonserver's flags."""

import importlib

import typer


def serve(context: typer.Context) -> None:
    """Serve a model repository. Takes tritonserver's flags: argosy serve --model-repository=PATH …"""
    try:
        server = importlib.import_module("argosy_runtime.server")
    except ModuleNotFoundError as missing:
        typer.echo(f"argosy serve needs {missing.name}: pip install 'argosy[runtime]'", err=True)
        raise typer.Exit(1) from missing
    raise typer.Exit(server.main(context.args))
