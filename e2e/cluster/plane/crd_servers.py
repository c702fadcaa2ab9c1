"""API servers of custom resources on loopback: one etcd, and a server for each emulated version of Kubernetes."""

import re
import shutil
import ssl
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from e2e.cluster.errors import ClusterUnavailableError
from e2e.cluster.processes import Processes
from e2e.cluster.programs.crd_apiserver import CrdPrograms
from e2e.cluster.state import free_ports
from e2e.cluster.waiting import wait_for

READY_TIMEOUT_S = 60.0


@dataclass(frozen=True, slots=True)
class CrdServer:
    """A running server. Every request may do everything; `authority` is the file that its certificate is checked by."""

    name: str
    url: str
    authority: Path

    def ready(self) -> bool:
        """Return whether it answers and reports itself ready."""
        if not self.authority.exists():
            return False
        try:
            context = ssl.create_default_context(cafile=str(self.authority))
            with urllib.request.urlopen(f"{self.url}/readyz", timeout=10, context=context):
                return True
        except (urllib.error.URLError, ssl.SSLError, OSError):
            return False


def emulated_versions(help_text: str) -> tuple[str, str]:
    """Return the oldest and the newest version that a server can emulate, from what its --help says."""
    match = re.search(r"--emulated-version .*?kube=(\d+\.\d+)\.\.(\d+\.\d+)", help_text, re.DOTALL)
    if match is None:
        raise ClusterUnavailableError("the API server of custom resources says no version that it emulates")
    return match[1], match[2]


@contextmanager
def crd_servers(folder: Path, programs: CrdPrograms) -> Iterator[Mapping[str, CrdServer]]:
    """Yield the oldest and the newest version of Kubernetes that the server emulates, by name; end them after the
    block.
    """
    help_text = subprocess.run([programs.server, "--help"], capture_output=True, text=True, timeout=60).stdout
    names = emulated_versions(help_text)
    ports = free_ports(2 + len(names))
    processes = Processes(folder)
    try:
        _start_etcd(processes, programs, folder, *ports[:2])
        servers = {
            name: _start(processes, programs, folder, f"http://127.0.0.1:{ports[0]}", name, port)
            for name, port in zip(names, ports[2:], strict=True)
        }
        for server in servers.values():
            wait_for(
                f"Kubernetes {server.name} in {folder}", lambda server=server: _up(processes, server), READY_TIMEOUT_S
            )
        yield servers
    finally:
        processes.stop()
        shutil.rmtree(folder / "etcd", ignore_errors=True)


def _start_etcd(processes: Processes, programs: CrdPrograms, folder: Path, client_port: int, peer_port: int) -> None:
    client, peer = f"http://127.0.0.1:{client_port}", f"http://127.0.0.1:{peer_port}"
    processes.start("etcd", [
        programs.etcd, f"--data-dir={folder / 'etcd'}", "--unsafe-no-fsync", "--log-level=warn",
        f"--listen-client-urls={client}", f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}", f"--initial-advertise-peer-urls={peer}", f"--initial-cluster=default={peer}",
    ])  # fmt: skip


def _start(processes: Processes, programs: CrdPrograms, folder: Path, etcd: str, name: str, port: int) -> CrdServer:
    certificates = folder / f"certificates-{name}"
    processes.start(name, [
        programs.server, f"--etcd-servers={etcd}", f"--etcd-prefix=/{name}", f"--emulated-version=kube={name}",
        "--bind-address=127.0.0.1", f"--secure-port={port}", f"--cert-dir={certificates}",
    ])  # fmt: skip
    return CrdServer(name, f"https://127.0.0.1:{port}", certificates / "apiserver.crt")


def _up(processes: Processes, server: CrdServer) -> bool:
    processes.must_live("etcd")
    processes.must_live(server.name)
    return server.ready()
