"""Listening sockets."""

import errno
import socket

from argosy_runtime.errors import ServingError, unavailable

BACKLOG = 1024


def cannot_listen(flag: str, port: int, reason: str) -> ServingError:
    """Return the error of a port that cannot be opened, naming the flag that chooses it."""
    return unavailable(f"{flag} {port} {reason}")


def bind(host: str, port: int, flag: str, reuse_port: bool = False) -> socket.socket:
    """Return a listening TCP socket; port 0 takes any free one. Raises UNAVAILABLE, naming the flag, where it
    cannot.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if reuse_port:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        listening.bind((host, port))
        # Listening here and not later: with SO_REUSEADDR a port in use shows only now.
        listening.listen(BACKLOG)
    except (OSError, OverflowError) as error:
        listening.close()
        if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
            raise cannot_listen(flag, port, "is in use") from error
        raise cannot_listen(flag, port, f"cannot be opened on {host}: {error}") from error
    listening.setblocking(False)
    return listening
