"""The owners of files in a cache folder that several agents may share, and whether they still run.

An owner is a process, written into a file's name. It touches its file every few seconds. It is gone when its process is
(seen from the same machine and process namespace), or when its file stood still for long, by the clock of the disk
itself: clocks of machines may differ.
"""

import os
import secrets
import socket
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

BEAT_S = 5.0
GONE_AFTER_S = 45.0


@dataclass(frozen=True, slots=True)
class Owner:
    """One `Storage` of one process. `began` is when the process did, in seconds since 1970."""

    host: str
    namespace: str
    pid: int
    began: int
    instance: str

    @classmethod
    def mine(cls) -> "Owner":
        """Return a new owner of this process."""
        host = "".join(letter if letter.isalnum() else "-" for letter in socket.gethostname())[:48]
        return cls(host, _namespace(), os.getpid(), int(psutil.Process().create_time()), secrets.token_hex(4))

    @classmethod
    def parse(cls, text: str) -> "Owner | None":
        """Return the owner that `str` of one wrote; None where it is none."""
        match text.split("_"):
            case [host, namespace, pid, began, instance] if pid.isdigit() and began.isdigit():
                return cls(host, namespace, int(pid), int(began), instance)
        return None

    def __str__(self) -> str:
        return f"{self.host}_{self.namespace}_{self.pid}_{self.began}_{self.instance}"

    def ended(self, seen_from: "Owner") -> bool:
        """Return whether its process has certainly ended, as seen from `seen_from`."""
        if (self.host, self.namespace) != (seen_from.host, seen_from.namespace) or not self.namespace:
            return False
        try:
            return abs(psutil.Process(self.pid).create_time() - self.began) > 2
        except psutil.NoSuchProcess:
            return True
        except psutil.Error:
            return False


def is_at_work(text: str, path: Path, seen_from: Owner, now: float, gone_after: float = GONE_AFTER_S) -> bool:
    """Return whether the owner written as `text` still touches `path`; `now` is the disk's own time."""
    owner = Owner.parse(text)
    if owner is None or owner.ended(seen_from):
        return False
    try:
        return now - path.stat().st_mtime < gone_after
    except OSError:
        return False


def disk_time(folder: Path, owner: Owner) -> float:
    """Return the time by the disk of `folder`; by this machine where the disk is full."""
    probe = folder / f".clock-{owner}-{threading.get_ident()}"
    try:
        probe.write_bytes(b"")
        os.utime(probe)
        return probe.stat().st_mtime
    except OSError:
        return time.time()
    finally:
        with suppress(OSError):
            probe.unlink()


def _namespace() -> str:
    """Return the namespace of this process's number."""
    try:
        return os.readlink("/proc/self/ns/pid").strip("pid:[]")
    except OSError:
        return "host" if not Path("/proc").exists() else ""
