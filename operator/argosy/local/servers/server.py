"""What a server is started with: the bundled runtime, its ports, its GPUs, and what its pool sets."""

import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from argosy_agent.jsonfiles import read_json

from .ports import Ports

PROGRAM = (sys.executable, "-m", "argosy_runtime.server")
"""The bundled runtime."""
EXIT_TIMEOUT_S = 30
"""How long a server may drain its requests before it is killed: tritonserver's own default."""


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """What a pool sets for its servers: variables, and flags beyond those that every server has."""

    environment: Mapping[str, str] = field(default_factory=dict)
    flags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Command:
    """What a server is started with. `devices` becomes CUDA_VISIBLE_DEVICES; empty hides every GPU."""

    repository: Path
    host: str
    ports: Ports
    devices: tuple[str, ...] = ()
    settings: ServerSettings = ServerSettings()
    program: tuple[str, ...] = PROGRAM

    @property
    def control_token(self) -> Path:
        """The file with the token that control of the server needs."""
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
        """Return what is set in its environment beyond this process's own."""
        return {**self.settings.environment, "CUDA_VISIBLE_DEVICES": ",".join(self.devices)}

    def record(self) -> dict[str, object]:
        """Return what must be the same for a running server to be taken over."""
        return {"arguments": self.arguments(), "variables": self.variables(), "ports": asdict(self.ports)}


def left_ports(folder: Path) -> Ports | None:
    """Return the ports that the last server of a folder had."""
    record = read_json(folder / "process.json") or {}
    ports = record.get("ports", {})
    return Ports(**ports) if ports else None
