"""Argosy's own server, started as its users start it, behind the same handle as its peer."""

import os
import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from tests.peers.server import Ports, Server, start

ROOT = Path(__file__).resolve().parents[2]


def argosy(
    repository: Path,
    *flags: str,
    log: Path,
    wait_for: str = "/v2/health/ready",
    python: str = sys.executable,
    cores: str = "",
    timeout_s: float = 120.0,
    environment: Mapping[str, str] = MappingProxyType({}),
) -> Server:
    """Start Argosy's server on `repository` with more `flags` of tritonserver's; it answers `wait_for`.

    Another interpreter than the running one, of the same version, borrows this one's packages. `cores`: those that the
    server may use, as taskset takes them. `environment`: further variables.
    """
    confined = ["taskset", "--cpu-list", cores] if cores else []

    def command(ports: Ports) -> list[str]:
        return [
            *confined,
            python,
            "-m",
            "argosy_runtime.server",
            f"--model-repository={repository}",
            "--http-address=127.0.0.1",
            "--grpc-address=127.0.0.1",
            "--metrics-address=127.0.0.1",
            f"--http-port={ports.http}",
            f"--grpc-port={ports.grpc}",
            f"--metrics-port={ports.metrics}",
            *flags,
        ]

    borrowed = [] if python == sys.executable else [sysconfig.get_path("purelib")]
    path = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), str(ROOT / "runtime"), *borrowed]))
    variables = {"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1", **environment}
    return start("argosy", command, log, variables, wait_for, timeout_s)
