"""Requests over HTTP that many tests send, and everything that comes back."""

import json
import socket

ECHO = {"inputs": [{"name": "IN", "datatype": "FP32", "shape": [1, 2], "data": [1.5, 2]}]}
GOOD = json.dumps(ECHO).encode()


def round_trip(port: int, sent: bytes) -> bytes:
    """Send this and return everything that comes back until the server closes."""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        connection.sendall(sent)
        return b"".join(iter(lambda: connection.recv(1 << 16), b""))
