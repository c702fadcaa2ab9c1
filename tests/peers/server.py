"""A serving process under test: started on free loopback ports, stopped by its own process id."""

import http.client
import os
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from e2e.cluster.state import free_ports


@dataclass(frozen=True)
class Ports:
    """The ports of one server on 127.0.0.1."""

    http: int
    grpc: int
    metrics: int


@dataclass
class Server:
    """A running inference server."""

    name: str
    process: subprocess.Popen[bytes] = field(repr=False)
    ports: Ports
    log: Path

    @property
    def http(self) -> str:
        """Its HTTP address, as tritonclient takes it: host:port."""
        return f"127.0.0.1:{self.ports.http}"

    @property
    def grpc(self) -> str:
        """Its gRPC address: host:port."""
        return f"127.0.0.1:{self.ports.grpc}"

    @property
    def metrics(self) -> str:
        """Its metrics address: host:port."""
        return f"127.0.0.1:{self.ports.metrics}"

    def alive(self) -> bool:
        """Return whether the process still runs."""
        return self.process.poll() is None

    def stop(self, grace_s: float = 20.0) -> None:
        """Ask it to end, wait, and only then kill it."""
        if not self.alive():
            return
        self.process.terminate()
        try:
            self.process.wait(grace_s)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def tail(self, lines: int = 30) -> str:
        """Return the end of its log."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])


class ServerStartError(Exception):
    """A server ended, or did not become ready, with the end of its log."""


def start(
    name: str,
    command: Callable[[Ports], list[str]],
    log: Path,
    env: Mapping[str, str],
    wait_for: str = "/v2/health/ready",
    timeout_s: float = 120.0,
) -> Server:
    """Start `command(ports)` and wait until `wait_for` answers 200 over HTTP.

    A port can be taken between its choice and its use, so a start that ends at once over one is tried again.
    """
    for attempt in range(3):
        ports = Ports(*free_ports(3))
        with log.open("wb") as sink:
            process = subprocess.Popen(command(ports), stdout=sink, stderr=subprocess.STDOUT, env={**os.environ, **env})
        server = Server(name, process, ports, log)
        try:
            wait(server, wait_for, timeout_s)
            return server
        except ServerStartError:
            server.stop(grace_s=5.0)
            if attempt == 2 or not _lost_port(server):
                raise
        except BaseException:
            server.stop(grace_s=5.0)
            raise
    raise AssertionError("unreachable")


def _lost_port(server: Server) -> bool:
    words = server.tail(200).lower()
    return "in use" in words or ("unavailable" in words and "socket" in words)


def wait(server: Server, path: str, timeout_s: float, pause_s: float = 0.05) -> None:
    """Poll `path` every `pause_s` until the server answers 200. Raises ServerStartError when it does not."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        if not server.alive():
            code = server.process.returncode
            raise ServerStartError(f"{server.name} ended with status {code}:\n{server.tail()}")
        if answers(server, path):
            return
        time.sleep(pause_s)
    raise ServerStartError(f"{server.name} was not ready after {timeout_s:.0f} s:\n{server.tail()}")


def answers(server: Server, path: str) -> bool:
    """Return whether it answers 200 at `path`, within two seconds."""
    connection = http.client.HTTPConnection("127.0.0.1", server.ports.http, timeout=2.0)
    try:
        connection.request("GET", path)
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
