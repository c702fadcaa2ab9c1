"""Fixed ports that a test needs because what it runs names them."""

import socket
from collections.abc import Iterable

from e2e.starting import give_up


def need(ports: Iterable[int], who: str) -> None:
    """Skip, or under CI=true fail, where another program has one of the ports that `who` uses."""
    for port in ports:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                give_up(f"port {port}, which {who} uses, is taken by another program", may_be_brought=False)
