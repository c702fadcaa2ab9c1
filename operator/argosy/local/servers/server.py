"""The command of a server: the bundled runtime, its ports, its GPUs, and the settings of its pool."""

import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from argosy_agent.jsonfiles import read_json

from .ports import Ports

PROGRAM = (sys.executable, "-m", "argosy_runtime.server")
"""The bundled runtime."""
EXIT_TIMEOUT_S = 30
"""Seconds in which a server may drain its requests before it is killed: tritonserver's default."""


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """Variables and flags that a pool adds to its servers."""

    environment: Mapping[str, str] = field(default_factory=dict)
    flags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Command:
    """The command of a server. `devices` become CUDA_VISIBLE_DEVICES; empty hides every GPU."""

    repository: Path
    host: str
    ports: Ports
    devices: tuple[str, ...] = ()
    settings: ServerSettings = ServerSettings()
    program: tuple[str, ...] = PROGRAM

    @property
    def control_token(self) -> Path:
        """The file with the token that authorizes control requests."""
        return self.repository.with_name("control-token")

    def arguments(self) -> list[str]:
        """Return the command line, with tritonserver's flags."""
        return [
            *self.program,
            f"--model-repository={self.repository}",
            "--model-control-mode=explicit",
            f"--control-token-file={self.control_token}",
            f"--http-address={self.host}",
            f"--grpc-address={self.host}",
            f"--metrics-address={self.host}",
            f"--http-port={self.ports.http}",
            f"--grpc-port={self.ports.grpc}",
            f"--metrics-port={self.ports.metrics}",
            f"--exit-timeout-secs={EXIT_TIMEOUT_S}",
            *self.settings.flags,
        ]

    def variables(self) -> dict[str, str]:
        """Return the variables to add to this process's environment."""
        return {**self.settings.environment, "CUDA_VISIBLE_DEVICES": ",".join(self.devices)}

    def record(self) -> dict[str, object]:
        """Return what must be equal for a running server to be adopted."""
        return {"arguments": self.arguments(), "variables": self.variables(), "ports": asdict(self.ports)}


def left_ports(folder: Path) -> Ports | None:
    """Return the ports of the last server of a folder."""
    record = read_json(folder / "process.json") or {}
    ports = record.get("ports", {})
    return Ports(**ports) if ports else None
