"""Argosy's own server with models on vLLM."""

import json
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from benchmarks.language import environment
from benchmarks.language.systems import System, server
from e2e.cluster.state import free_ports

NAME = "argosy"


def model(repository: Path, name: str, arguments: Mapping[str, Any]) -> None:
    """Write a model on vLLM with an engine of these arguments."""
    version = repository / name / "1"
    version.mkdir(parents=True)
    (version / "model.json").write_text(json.dumps(arguments))
    (version.parent / "config.pbtxt").write_text('backend: "vllm"\n')


def write_routed(repository: Path, name: str, variants: Sequence[Mapping[str, Any]], **rules: Any) -> None:
    """Write a model that is served by these variants."""
    version = repository / name / "1"
    version.mkdir(parents=True)
    (version / ".keep").touch()
    value = json.dumps(json.dumps({"variants": list(variants), **rules}))
    parameter = f'parameters {{ key: "variants" value {{ string_value: {value} }} }}'
    (version.parent / "config.pbtxt").write_text(f'backend: "variants"\n{parameter}\n')


def command(repository: Path, http: int, *flags: str) -> list[str]:
    """Return the command of the server, as its users run it."""
    grpc, metrics = free_ports(2)
    addresses = [f"--{name}-address=127.0.0.1" for name in ("http", "grpc", "metrics")]
    ports = [f"--http-port={http}", f"--grpc-port={grpc}", f"--metrics-port={metrics}"]
    return [
        sys.executable, "-m", "argosy_runtime.server", f"--model-repository={repository}", *addresses, *ports, *flags
    ]  # fmt: skip


@asynccontextmanager
async def argosy(arguments: Mapping[str, Any], folder: Path) -> AsyncIterator[System]:
    """Yield Argosy's server with one model, `tiny`."""
    repository = folder / "models"
    model(repository, "tiny", arguments)
    (port,) = free_ports(1)
    variables = environment.engine_variables()
    async with server(NAME, ["tiny"], command(repository, port), folder, variables, port) as system:
        yield system
