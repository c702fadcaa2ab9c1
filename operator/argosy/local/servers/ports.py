"""The ports of servers, and the errors where a server cannot listen on one."""

import errno
import socket
from collections.abc import Collection
from dataclasses import dataclass


class ListenError(Exception):
    """A server cannot listen on a requested address or port."""


class PortInUseError(ListenError):
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


def repeated_port(ports: Ports) -> str | None:
    """Return the error of two flags with one number, or None."""
    first: dict[int, str] = {}
    for flag, port in ports.flags().items():
        if port in first:
            return f"{first[port]} and {flag} are both {port}: give each a number of its own"
        first[port] = flag
    return None


def free(host: str, port: int) -> bool:
    """Return whether no program listens on a port.

    Raises PermissionError where this process may not listen on it, and ListenError for an address of another machine.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except PermissionError:
            raise
        except (OSError, UnicodeError) as error:
            if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
                return False
            reason = error.strerror if isinstance(error, OSError) else None
            raise ListenError(
                f"this machine cannot listen on {host}: {reason or error}: pass one of its own addresses with --host, "
                "such as 127.0.0.1, or 0.0.0.0 for all"
            ) from error
    return True


def check_free(host: str, ports: Ports) -> None:
    """Raise PortInUseError for the first port in use, or ListenError if the server may not listen on one."""
    for flag, port in ports.flags().items():
        try:
            is_free = free(host, port)
        except PermissionError as error:
            raise ListenError(f"port {port} on {host}: {error.strerror}: pass another one with {flag}") from error
        if not is_free:
            raise PortInUseError(flag, port, host)


def next_free(host: str, first: Ports, taken: Collection[int]) -> Ports:
    """Return the nearest free ports above those of the `first` server, none of them in `taken`. Raises ListenError."""
    used = set(taken)

    def above(port: int) -> int:
        higher = (number for number in range(port + 1, 65536) if number not in used and _allowed(host, number))
        nearest = next(higher, None)
        if nearest is None:
            raise ListenError(f"no port above {port} on {host} is free: pass a lower one")
        used.add(nearest)
        return nearest

    used.update((first.http, first.grpc, first.metrics))
    return Ports(above(first.http), above(first.grpc), above(first.metrics))


def _allowed(host: str, port: int) -> bool:
    """Return whether a port is free and this process may listen on it. Raises ListenError."""
    try:
        return free(host, port)
    except PermissionError:
        return False
