"""The ports of servers, and the error where one is in use."""

import socket
from collections.abc import Collection
from dataclasses import dataclass


class PortInUseError(Exception):
    """Another program listens on a requested port."""

    def __init__(self, flag: str, port: int, host: str) -> None:
        super().__init__(f"port {port} on {host} is in use by another program: pass another one with {flag}")


@dataclass(frozen=True, slots=True)
class Ports:
    """The three ports of one server."""

    http: int
    grpc: int
    metrics: int

    def flags(self) -> dict[str, int]:
        """Return the ports by the flags of `argosy up` that set them."""
        return {"--http-port": self.http, "--grpc-port": self.grpc, "--metrics-port": self.metrics}


def free(host: str, port: int) -> bool:
    """Return whether a server could listen on a port now."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True


def check_free(host: str, ports: Ports) -> None:
    """Raise PortInUseError for the first port in use."""
    for flag, port in ports.flags().items():
        if not free(host, port):
            raise PortInUseError(flag, port, host)


def next_free(host: str, first: Ports, taken: Collection[int]) -> Ports:
    """Return the nearest free ports above those of the `first` server, none of them in `taken`."""
    used = set(taken)

    def above(port: int) -> int:
        nearest = next(higher for higher in range(port + 1, 65536) if higher not in used and free(host, higher))
        used.add(nearest)
        return nearest

    used.update((first.http, first.grpc, first.metrics))
    return Ports(above(first.http), above(first.grpc), above(first.metrics))
