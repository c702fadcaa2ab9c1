"""Access to a cluster, ours or another: kubectl as its users have it, and reads over HTTP."""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from e2e.cluster.errors import ClusterError

if TYPE_CHECKING:
    from e2e.cluster.client import Reader


class Access:
    """A cluster as its users see it: a kubeconfig and the kubectl program."""

    def __init__(self, kubeconfig: Path, kubectl: Path) -> None:
        self.kubeconfig = kubeconfig
        self._kubectl = kubectl
        self._reader: Reader | None = None

    def kubectl(self, *args: str, stdin: str | None = None, timeout_s: float = 60.0) -> str:
        """Run kubectl and return what it prints; raises ClusterError with its complaint when it fails."""
        done = self.kubectl_process(*args, stdin=stdin, timeout_s=timeout_s)
        if done.returncode != 0:
            raise ClusterError(f"kubectl {' '.join(args)} failed: {done.stderr.strip()}")
        return done.stdout

    def kubectl_process(
        self, *args: str, stdin: str | None = None, timeout_s: float = 60.0
    ) -> subprocess.CompletedProcess[str]:
        """Run kubectl without the check, for commands that are meant to fail."""
        command, env = self._command(args), _environment()
        try:
            return subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=timeout_s, env=env)
        except subprocess.TimeoutExpired as error:
            raise ClusterError(f"kubectl {' '.join(args)}: no end within {timeout_s:.0f} s") from error

    def start_kubectl(self, *args: str) -> subprocess.Popen[str]:
        """Start a kubectl that its caller writes to and reads from, and ends."""
        pipe = subprocess.PIPE
        return subprocess.Popen(self._command(args), stdin=pipe, stdout=pipe, text=True, env=_environment())

    def _command(self, args: Sequence[str]) -> list[str]:
        # Its discovery cache is per address, and a port may have been another cluster's.
        cache = self.kubeconfig.parent / "kubectl-cache"
        return [str(self._kubectl), f"--kubeconfig={self.kubeconfig}", f"--cache-dir={cache}", *args]

    @property
    def reader(self) -> "Reader":
        """Reads objects over HTTP."""
        if self._reader is None:
            from e2e.cluster.client import Reader  # not at the top: its import takes as long as all others together

            self._reader = Reader(self)
        return self._reader

    def read(self, *words: str) -> Any:
        """Return what `kubectl get WORDS -o json` prints, parsed; without kubectl."""
        return self.reader.read(*words)

    def has(self, *words: str) -> bool:
        """Return whether the API server has the object, or one of the list, that `kubectl get WORDS` prints."""
        try:
            answer = self.read(*words)
        except ClusterError:
            return False
        return answer["kind"] != "List" or bool(answer["items"])

    def apply(self, manifest: str, *, server_side: bool = False) -> None:
        """Run kubectl apply on a YAML text; fields that an old API server does not know (CEL rules) are dropped there.

        Server-side, an API server before 1.21 refuses ports without `protocol`; otherwise an object has to fit into 256
        kB, since it is stored as an annotation.
        """
        words = ("--server-side", "--force-conflicts") if server_side else ()
        self.kubectl("apply", *words, "--validate=false", "-f", "-", stdin=manifest)

    def ready(self) -> bool:
        """Return whether the API server answers and reports itself ready."""
        try:
            return self.reader.text("/readyz", timeout_s=10) == "ok"
        except ClusterError:  # no answer in time, as from an API server that starts on a busy machine
            return False


def _environment() -> dict[str, str]:
    """Return kubectl's environment, which names no other cluster."""
    return {key: value for key, value in os.environ.items() if key != "KUBECONFIG"}
