"""A real S3 server (moto), in an environment of its own: boto3 pins libraries that the project needs newer.

It is spoken to over plain HTTP: it wants to see who asks and checks no signature.
"""

import http.client
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from tests.peers.cache import PeerUnavailableError, installed, run

RELEASE = "5.2.5"
_WHO = "AWS4-HMAC-SHA256 Credential=key/20200101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=0"
_SERVE = """
import logging, sys
from moto.server import ThreadedMotoServer
logging.disable()
server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
print(server.get_host_and_port()[1], flush=True)
sys.stdin.read()
server.stop()
"""


@dataclass(frozen=True, slots=True)
class S3:
    """A server that listens on 127.0.0.1."""

    port: int

    @property
    def url(self) -> str:
        """Its endpoint."""
        return f"http://127.0.0.1:{self.port}"

    def create_bucket(self, bucket: str) -> None:
        """Make an empty bucket."""
        self._send("PUT", f"/{bucket}")

    def put(self, bucket: str, key: str, body: bytes) -> None:
        """Put an object; any key, also one that ends in a slash."""
        self._send("PUT", f"/{bucket}/{quote(key)}", body)

    def reset(self) -> None:
        """Forget every bucket."""
        self._send("POST", "/moto-api/reset")

    def _send(self, method: str, path: str, body: bytes = b"") -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request(method, path, body, {"Authorization": _WHO})
            answer = connection.getresponse()
            text = answer.read()
        finally:
            connection.close()
        if answer.status != 200:
            raise RuntimeError(f"{method} {path}: {answer.status} {text.decode(errors='replace')[:500]}")


def install() -> Path:
    """Return the folder of its environment. Raises PeerUnavailableError when it is unavailable."""
    return installed(f"moto-{RELEASE}-py{sys.version_info.major}.{sys.version_info.minor}", _build)


def _build(folder: Path) -> None:
    run([sys.executable, "-m", "venv", "--without-pip", str(folder)], "making moto's environment")
    install = [sys.executable, "-m", "uv", "pip", "install", "--python", str(folder / "bin" / "python")]
    run([*install, "--quiet", "--compile-bytecode", f"moto[s3,server]=={RELEASE}"], f"uv pip install moto {RELEASE}")


@contextmanager
def serving() -> Iterator[S3]:
    """Yield the running server. It ends with its standard input, so also where this process is killed."""
    python = install() / "bin" / "python"
    command = [str(python), "-c", _SERVE]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        port = process.stdout.readline().strip()
        if not port:
            raise PeerUnavailableError(f"moto ended with status {process.wait()} before it listened")
        yield S3(int(port))
