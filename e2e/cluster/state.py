"""What a cluster's folder remembers, so that a later command finds the same ports, and two kinds are never mixed."""

import fcntl
import json
import secrets
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

PORT_RANGE = range(12_000, 30_000)
PORTS = ("etcd", "etcd_peer", "apiserver", "controller_manager", "scheduler")


@dataclass(frozen=True, slots=True)
class State:
    """A cluster's kind, addresses and secrets. `address` is where the API server listens."""

    kind: str
    address: str
    token: str
    ports: dict[str, int]

    @property
    def server(self) -> str:
        return f"https://{self.address}:{self.ports['apiserver']}"

    @classmethod
    def new(cls, kind: str, address: str) -> Self:
        """Return a fresh state with free ports and a fresh token."""
        return cls(kind, address, secrets.token_hex(16), dict(zip(PORTS, free_ports(len(PORTS)), strict=True)))

    @classmethod
    def load(cls, folder: Path) -> Self | None:
        """Return the state saved in `folder`, if there is one."""
        try:
            return cls(**json.loads(_file(folder).read_text()))
        except FileNotFoundError:
            return None

    def save(self, folder: Path) -> None:
        temporary = folder / ".cluster.json.new"
        temporary.touch(mode=0o600)
        temporary.write_text(json.dumps(asdict(self), indent=2))
        temporary.rename(_file(folder))

    @staticmethod
    def forget(folder: Path) -> None:
        _file(folder).unlink(missing_ok=True)


def _file(folder: Path) -> Path:
    return folder / "cluster.json"


def free_ports(count: int) -> list[int]:
    """Return ports on which nothing listens now, all different, outside those that the kernel hands out itself.

    The kernel takes ports of outgoing connections, and of listeners that take any, from 32768 on; node ports begin at
    30000. So a port is lost between this call and its use only to another caller that draws the same.
    """
    ports: list[int] = []
    while len(ports) < count:
        port = secrets.choice(PORT_RANGE)
        if port not in ports and _is_free(port):
            ports.append(port)
    return ports


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


@contextmanager
def locked(folder: Path, *, wait: bool = True) -> Iterator[None]:
    """Hold the folder's lock, for one `up` or `down` at a time; it ends with its holder, even after a crash.

    Raises BlockingIOError where it is taken and `wait` is false.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
