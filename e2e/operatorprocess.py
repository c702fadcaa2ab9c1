"""`argosy operator` as a process on this machine, for tests that need no Pod of it."""

import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Self

from e2e.cluster import Cluster
from e2e.cluster.state import free_ports
from e2e.cluster.waiting import poll

ENDS_S = 30.0


class OperatorProcess:
    """One replica: `with OperatorProcess(cluster, folder / "one.log") as operator: …`. It ends with the block."""

    def __init__(self, cluster: Cluster, log: Path) -> None:
        (self._port,) = free_ports(1)
        self.log = log
        with log.open("wb") as output:
            self.child = subprocess.Popen(
                [sys.executable, "-m", "argosy.cli", "operator", f"--kubeconfig={cluster.kubeconfig}",
                 "--host=127.0.0.1", f"--port={self._port}"],
                stdout=output, stderr=subprocess.STDOUT,
            )  # fmt: skip

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.child.poll() is None:
            self.child.send_signal(signal.SIGTERM)
        try:
            self.child.wait(ENDS_S)
        finally:
            self.child.kill()
            self.child.wait()

    def ask(self, path: str) -> tuple[int, str]:
        """Status and text of one of its pages; 0 where it does not answer."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self._port}{path}", timeout=10) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except OSError:
            return 0, ""

    def leads(self) -> bool:
        """Whether it acts."""
        return "\nargosy_leader 1.0" in self.ask("/metrics")[1]

    def rounds(self) -> float:
        """How often it has reconciled a pool."""
        lines = self.ask("/metrics")[1].splitlines()
        return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith("argosy_reconcile_total{"))

    def until(self, what: str, condition: Callable[[], bool], timeout_s: float = 60.0) -> None:
        """Wait for something; AssertionError with its log where it does not come."""
        if not poll(condition, timeout_s):
            raise AssertionError(f"{what}: not within {timeout_s:.0f} s\n{self.log.read_text()[-4000:]}")
