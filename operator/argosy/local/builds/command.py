"""The command of a builder, the files that it reads, and the folder that it works in.

request.json       the build request
report.json        the builder's report
inputs.json        a digest of the local files that it read
builder.log        its output
process.json       the running process
workspace/         finished phases, from which a later try continues
"""

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from argosy_agent.contract.builds import BuildRequest, digest_of
from argosy_agent.transfer.localfiles import is_file, local_files, local_path

PROGRAM = (sys.executable, "-m", "argosy_builder")
"""The bundled builder."""
LOG = "builder.log"
_COMPILERS = ("argosy", "onnxruntime", "torch", "tensorrt", "tensorrt_llm")


@dataclass(frozen=True, slots=True)
class BuilderCommand:
    """The command of a builder in its folder. `devices` become CUDA_VISIBLE_DEVICES; empty hides every GPU."""

    folder: Path
    timeout_s: float = 0.0
    devices: tuple[str, ...] = ()
    program: tuple[str, ...] = PROGRAM

    def arguments(self) -> list[str]:
        """Return the command line. Folders of claims and Secrets stay empty: credentials are this shell's."""
        return [
            *self.program,
            f"--request={self.folder / 'request.json'}",
            f"--workspace={self.folder / 'workspace'}",
            f"--report-file={self.folder / 'report.json'}",
            f"--pvc-root={self.folder / 'claims'}",
            f"--secrets={self.folder / 'secrets'}",
            f"--secrets-root={self.folder / 'secrets'}",
            "--allowed-folder=/",
            f"--timeout={self.timeout_s:g}",
        ]

    def variables(self) -> Mapping[str, str]:
        """Return the variables to add to this process's environment."""
        return {"CUDA_VISIBLE_DEVICES": ",".join(self.devices)}

    def record(self) -> Mapping[str, Any]:
        """Return the contents of process.json."""
        return {"arguments": self.arguments()}


def inputs_digest(request: BuildRequest) -> str:
    """Return a digest of the local files that a request names; empty where one of them cannot be read now.

    It is made of sizes and modification times: a file with the same bytes and a new time builds again, and the engine
    is then in the store.
    """
    try:
        return digest_of([_files(uri) for uri in sorted(set(_local_uris(request)))])
    except OSError:
        return ""


def _local_uris(request: BuildRequest) -> Iterator[str]:
    sources = [request.model, request.calibration]
    sources += [request.gate.data, request.gate.script] if request.gate else []
    yield from (source.uri for source in sources if source.uri and is_file(source.uri))


def _files(uri: str) -> list[list[str | int]]:
    return [[str(file.path), file.size, file.changed_ns] for file in local_files(local_path(uri))]


@cache
def installed_compilers() -> str:
    """Return the versions of installed compilers, in place of an image: `local: argosy 0.1.0, onnxruntime 1.31.1, …`.

    An engine is built again when they change.
    """
    versions = {package: _version(package) for package in _COMPILERS}
    return "local: " + ", ".join(f"{package} {installed}" for package, installed in versions.items() if installed)


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
