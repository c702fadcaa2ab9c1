"""etcd, API server, controller manager and scheduler, each a plain process."""

import shutil
import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from e2e.cluster.access import Access
from e2e.cluster.errors import ClusterError
from e2e.cluster.plane import kubeconfig
from e2e.cluster.plane.certificates import Authority, new_key
from e2e.cluster.plane.kubeconfig import Credentials
from e2e.cluster.processes import Processes
from e2e.cluster.programs.binaries import Binaries
from e2e.cluster.state import State
from e2e.cluster.waiting import wait_for

SERVICE_RANGE = "10.96.0.0/16"
API_SERVICE = "10.96.0.1"
READY_TIMEOUT_S = 180.0
SERVER_NAMES = ("localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc")


@dataclass(frozen=True, slots=True)
class ControlPlane:
    """The control plane of one cluster folder.

    `node_grace_s`: after so many seconds without a heartbeat a node counts as lost and its pods are evicted.
    """

    folder: Path
    state: State
    binaries: Binaries
    processes: Processes
    authority: Authority
    node_grace_s: int

    def start(self) -> Access:
        """Start what does not run yet, wait until the API server is ready, and return the administrator's access."""
        self._prepare()
        self._start_etcd()
        self.start_apiserver()
        access = self.access()
        # The controllers end where the API server has no rights for them within ten seconds.
        self._wait(access.ready, "etcd", "kube-apiserver")
        self._start_controllers()
        self.wait_until_ready(access)
        return access

    def access(self) -> Access:
        return Access(self.folder / "kubeconfig", self.binaries.path("kubectl"))

    def stop_apiserver(self) -> None:
        self.processes.stop("kube-apiserver", grace_s=5.0)

    def wait_until_ready(self, access: Access) -> None:
        def ready() -> bool:
            # The controller manager makes the default service account, without which no pod can be created.
            return access.ready() and access.has("serviceaccount/default")

        self._wait(ready, "etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")

    def _wait(self, ready: Callable[[], bool], *names: str) -> None:
        """Wait for a condition while these processes run. Raises ClusterError where one of them ends."""

        def is_ready() -> bool:
            for name in names:
                self.processes.must_live(name)
            return ready()

        wait_for(f"control plane in {self.folder}", is_ready, READY_TIMEOUT_S)

    def client_kubeconfig(self, name: str, user: str, groups: tuple[str, ...] = ()) -> Path:
        """Write NAME.kubeconfig for any user and groups, by client certificate."""
        path = self.folder / f"{name}.kubeconfig"
        if not path.exists():
            certificate, key = self.authority.client(name, user, groups)
            self._write(path, Credentials(certificate=certificate, key=key))
        return path

    def token_kubeconfig(self, name: str, token: str, namespace: str) -> Path:
        """Write NAME.kubeconfig for the holder of a token, in place of an earlier one."""
        return self._write(self.folder / f"{name}.kubeconfig", Credentials(token=token), namespace)

    def _write(self, path: Path, credentials: Credentials, namespace: str = "default") -> Path:
        content = kubeconfig.document(self.state.server, self.authority.certificate, credentials, namespace)
        return kubeconfig.write(path, content)

    def _prepare(self) -> None:
        self.authority.create()
        certificates = self.authority.folder
        if not (certificates / "apiserver.crt").exists():
            addresses = sorted({"127.0.0.1", self.state.address, API_SERVICE})
            self.authority.server("apiserver", SERVER_NAMES, addresses)
        if not (certificates / "service-accounts.key").exists():
            new_key(certificates / "service-accounts.key")
        if not (certificates / "apiserver-kubelet.crt").exists():
            self.authority.client("apiserver-kubelet", "kube-apiserver", ("system:masters",))
        tokens = self.folder / "tokens.csv"
        tokens.touch(mode=0o600)
        tokens.write_text(f"{self.state.token},admin,admin,system:masters\n")
        self._write(self.folder / "kubeconfig", Credentials(token=self.state.token))
        for name in ("kube-controller-manager", "kube-scheduler"):
            self.client_kubeconfig(name, f"system:{name}")

    def _start_etcd(self) -> None:
        client = f"http://127.0.0.1:{self.state.ports['etcd']}"
        peer = f"http://127.0.0.1:{self.state.ports['etcd_peer']}"
        self.processes.start("etcd", [
            self.binaries.path("etcd"), f"--data-dir={self.folder / 'etcd'}", "--unsafe-no-fsync", "--log-level=warn",
            f"--listen-client-urls={client}", f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}", f"--initial-advertise-peer-urls={peer}", f"--initial-cluster=default={peer}",
        ])  # fmt: skip

    def start_apiserver(self) -> None:
        """Start the API server on its own port and data; returns before it is ready."""
        keys = self.authority.folder
        self.processes.start("kube-apiserver", [
            self.binaries.path("kube-apiserver"),
            f"--etcd-servers=http://127.0.0.1:{self.state.ports['etcd']}",
            f"--bind-address={self.state.address}", f"--secure-port={self.state.ports['apiserver']}",
            f"--advertise-address={advertised(self.state.address)}",
            f"--tls-cert-file={keys / 'apiserver.crt'}", f"--tls-private-key-file={keys / 'apiserver.key'}",
            f"--client-ca-file={self.authority.certificate}", f"--token-auth-file={self.folder / 'tokens.csv'}",
            f"--kubelet-client-certificate={keys / 'apiserver-kubelet.crt'}",
            f"--kubelet-client-key={keys / 'apiserver-kubelet.key'}", "--kubelet-preferred-address-types=InternalIP",
            "--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction", "--allow-privileged=true",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={keys / 'service-accounts.key'}",
            f"--service-account-signing-key-file={keys / 'service-accounts.key'}",
            f"--service-cluster-ip-range={SERVICE_RANGE}",
        ])  # fmt: skip

    def _start_controllers(self) -> None:
        keys = self.authority.folder
        self.processes.start("kube-controller-manager", [
            self.binaries.path("kube-controller-manager"), *self._controller_flags("kube-controller-manager"),
            f"--secure-port={self.state.ports['controller_manager']}",
            f"--root-ca-file={self.authority.certificate}", f"--cluster-signing-cert-file={self.authority.certificate}",
            f"--cluster-signing-key-file={keys / 'ca.key'}",
            f"--service-account-private-key-file={keys / 'service-accounts.key'}",
            f"--service-cluster-ip-range={SERVICE_RANGE}", f"--node-monitor-grace-period={self.node_grace_s}s",
            "--use-service-account-credentials=true", "--kube-api-qps=500", "--kube-api-burst=1000",
        ])  # fmt: skip
        self.processes.start("kube-scheduler", [
            self.binaries.path("kube-scheduler"), *self._controller_flags("kube-scheduler"),
            f"--secure-port={self.state.ports['scheduler']}",
        ])  # fmt: skip

    def _controller_flags(self, name: str) -> list[str]:
        # Up to 1.23 both also listen without TLS on fixed ports, which two clusters could not share.
        insecure = ["--port=0"] if self.binaries.version < (1, 24) else []
        own = self.folder / f"{name}.kubeconfig"
        return [f"--kubeconfig={own}", "--bind-address=127.0.0.1", f"--cert-dir={self.folder / name}",
                "--leader-elect=false", *insecure]  # fmt: skip

    def remove_data(self) -> None:
        """Remove everything but the logs."""
        for name in ("etcd", "certificates", "kubectl-cache", "kube-controller-manager", "kube-scheduler", "hollow"):
            shutil.rmtree(self.folder / name, ignore_errors=True)
        for path in [self.folder / "tokens.csv", self.folder / "kubeconfig", *self.folder.glob("*.kubeconfig")]:
            path.unlink(missing_ok=True)


def advertised(bind_address: str) -> str:
    """Return the address that the API server publishes for itself; a loopback one it refuses."""
    return machine_address() if bind_address.startswith("127.") else bind_address


def machine_address() -> str:
    """Return this machine's own address on the way out (nothing is sent)."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError as error:
            raise ClusterError(f"this machine has no address besides loopback: {error}") from error
        address: str = probe.getsockname()[0]
        return address
