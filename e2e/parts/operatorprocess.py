"""`argosy operator` as a process on this machine, for tests that need no Pod of it."""

import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Self

from prometheus_client.parser import text_string_to_metric_families

from e2e.cluster import Cluster
from e2e.cluster.state import free_ports
from e2e.cluster.waiting import poll

ENDS_S = 30.0
_WRITING = ("create", "update", "patch", "delete")
_EXPECTED = ("leases", "events")
"""What is written in any case: who leads, and what is told."""


class OperatorProcess:
    """One replica: `with OperatorProcess(cluster, folder / "one.log") as operator: …`. It ends with the block.

    While it is waited for, one that ended by itself is started again, as a kubelet does: it loses its lease where the
    API server does not answer for long.
    """

    def __init__(self, cluster: Cluster, log: Path, *flags: str) -> None:
        (self._port,) = free_ports(1)
        self._cluster, self.log, self._flags = cluster, log, flags
        self._killed = False
        log.write_bytes(b"")
        self._start()

    def _start(self) -> None:
        with self.log.open("ab") as output:
            self._child = subprocess.Popen(
                [sys.executable, "-m", "argosy.cli", "operator", f"--kubeconfig={self._cluster.kubeconfig}",
                 "--host=127.0.0.1", f"--port={self._port}", *self._flags],
                stdout=output, stderr=subprocess.STDOUT,
                # Linux shares a busy machine out by sessions: in the tests' own it would get what they leave.
                start_new_session=True,
            )  # fmt: skip

    def kill(self) -> None:
        """End it at once, for good."""
        self._killed = True
        self._child.kill()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._child.poll() is None:
            self._child.send_signal(signal.SIGTERM)
        try:
            self._child.wait(ENDS_S)
        finally:
            self._child.kill()
            self._child.wait()

    def ask(self, path: str) -> tuple[int, str]:
        """Return status and text of one of its pages; 0 where it does not answer."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self._port}{path}", timeout=10) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except OSError:
            return 0, ""

    def leads(self) -> bool:
        """Return whether it is the leader."""
        return "\nargosy_leader 1.0" in self.ask("/metrics")[1]

    def rounds(self) -> float:
        """Return how often it has reconciled a pool."""
        return sum(count for _, count in self._samples("argosy_reconcile_total"))

    def writes(self) -> Counter[str]:
        """Count its writes by kind, as `patch deployments`; leases and Events are left out."""
        writes: Counter[str] = Counter()
        for labels, count in self._samples("argosy_api_requests_total"):
            if labels["verb"] in _WRITING and labels["resource"] not in _EXPECTED:
                writes[f"{labels['verb']} {labels['resource']}"] += int(count)
        return writes

    def _samples(self, metric: str) -> Iterator[tuple[dict[str, str], float]]:
        """Yield the samples of a counter, with their labels."""
        for family in text_string_to_metric_families(self.ask("/metrics")[1]):
            yield from ((sample.labels, sample.value) for sample in family.samples if sample.name == metric)

    def until(self, what: str, condition: Callable[[], bool], timeout_s: float = 60.0, every_s: float = 0.2) -> None:
        """Wait for something; AssertionError with its log where it does not come."""
        if not poll(lambda: self._runs() and condition(), timeout_s, every_s):
            raise AssertionError(f"{what}: not within {timeout_s:.0f} s\n{self.log.read_text()[-4000:]}")

    def _runs(self) -> bool:
        if self._child.poll() is not None and not self._killed:
            self._start()
        return True
