"""A cluster: made, found again, used, and removed."""

import json
import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Self

from e2e.cluster.access import Access
from e2e.cluster.errors import ClusterError, ClusterUnavailableError
from e2e.cluster.node import network
from e2e.cluster.node import node as nodes
from e2e.cluster.plane.certificates import Authority
from e2e.cluster.plane.control_plane import ControlPlane
from e2e.cluster.processes import Process, Processes
from e2e.cluster.programs import binaries
from e2e.cluster.state import State, locked
from e2e.cluster.waiting import wait_for

HOME = binaries.CACHE.parent / "e2e"
CONTROL_PLANE_ONLY = "control-plane"
WITH_NODE = "node"
NODE_GRACE_S = 40
DAY_S = 86_400
ACCOUNT_TIMEOUT_S = 60


class Cluster(Access):
    """A cluster that this package started. Use it as a context manager, or call `down`."""

    def __init__(self, folder: Path, state: State, programs: binaries.Binaries, node_grace_s: int) -> None:
        self.folder = folder
        self.state = state
        self.binaries = programs
        self.processes = Processes(folder)
        self.plane = ControlPlane(
            folder, state, programs, self.processes, Authority(folder / "certificates"), node_grace_s
        )
        self.node = nodes.Node(folder, self.plane, self.processes) if state.kind == WITH_NODE else None
        super().__init__(folder / "kubeconfig", programs.path("kubectl"))

    @classmethod
    def control_plane(
        cls,
        folder: Path | None = None,
        *,
        name: str = "default",
        node_grace_s: int = DAY_S,
        build: bool = False,
        progress: Callable[[str], None] = lambda _: None,
    ) -> Self:
        """Start (or find running) a control plane without a node, about five seconds; any number stand side by side.

        `folder` keeps its state, logs included; without one it is `~/.cache/argosy/e2e/NAME`. The API server listens
        on loopback. `node_grace_s`: seconds without a heartbeat until a node counts as lost; a day, so that nodes
        which are only API objects stay Ready; give 40 for Kubernetes' own behaviour. Raises ClusterUnavailableError.
        """
        target = (folder or HOME / name).resolve()
        programs = binaries.find(build=build)
        progress(f"Kubernetes {programs.version[0]}.{programs.version[1]} from {programs.source} ({programs.folder})")
        with locked(target):
            state = _state(target, CONTROL_PLANE_ONLY, "127.0.0.1")
            cluster = cls(target, state, programs, node_grace_s)
            cluster._start()
        progress(f"control plane ready at {state.server}")
        return cluster

    @classmethod
    def with_node(
        cls,
        folder: Path | None = None,
        *,
        name: str = "default",
        build: bool = False,
        progress: Callable[[str], None] = lambda _: None,
    ) -> Self:
        """Start (or find running) a control plane and a real node whose containers run; one per machine, as root.

        The API server listens on the pods' bridge. There is no cluster DNS: pods use the `*_SERVICE_HOST` variables or
        cluster IPs. Raises ClusterUnavailableError.
        """
        target = (folder or HOME / name).resolve()
        programs = binaries.find(*binaries.NODE, build=build)
        progress(f"Kubernetes {programs.version[0]}.{programs.version[1]} from {programs.source} ({programs.folder})")
        nodes.check_possible(programs)
        with locked(target):
            cls._remove_dead_owner(target)
            nodes.claim(target)
            fresh = State.load(target) is None
            cluster = cls(target, _state(target, WITH_NODE, network.NODE_ADDRESS), programs, NODE_GRACE_S)
            try:
                cluster._start_with_node(progress)
            except BaseException:
                # One that ran before is left for its owner to look at.
                if fresh:
                    cluster._remove()
                raise
        return cluster

    @classmethod
    def _remove_dead_owner(cls, wanting: Path) -> None:
        """Remove the cluster that has this machine's node when nothing of it runs, as after the machine's restart."""
        target = nodes.owner()
        if target is None or target == wanting or State.load(target) is None:
            return
        # A lock that somebody holds says that it starts or ends just now: then it is not dead.
        with suppress(BlockingIOError), locked(target, wait=False):
            owner = cls.attach(target)
            if owner is not None and not any(alive for _, alive in owner.status()):
                owner._remove()

    def _start_with_node(self, progress: Callable[[str], None]) -> None:
        network.create()
        self._start()
        progress(f"control plane ready at {self.state.server}")
        if self.node is not None:
            self.node.start(self)
            progress(f"node {nodes.NAME} ready")

    @classmethod
    def attach(cls, folder: Path | None = None, *, name: str = "default") -> Self | None:
        """Return the cluster that an earlier `up` left in this folder, started or not; None when there is none."""
        target = (folder or HOME / name).resolve()
        state = State.load(target)
        return None if state is None else cls(target, state, binaries.find(), DAY_S)

    def _start(self) -> None:
        try:
            self.plane.start()
        except BaseException:
            self.processes.stop()
            raise

    @property
    def server(self) -> str:
        """The API server's URL."""
        return self.state.server

    @property
    def token(self) -> str:
        """The administrator's bearer token."""
        return self.state.token

    def status(self) -> list[tuple[Process, bool]]:
        """Return every process of the cluster, and whether it runs."""
        return [(process, process.alive()) for process in self.processes.all()]

    def stop_apiserver(self) -> None:
        """End the API server alone; etcd keeps its data."""
        self.plane.stop_apiserver()

    def start_apiserver(self) -> None:
        """Start it again on the same port and wait until it is ready."""
        self.plane.start_apiserver()
        self.plane.wait_until_ready(self)

    def user_kubeconfig(self, user: str, *groups: str) -> Path:
        """Write a kubeconfig for any user and groups, by client certificate; rights come from RBAC as for any user."""
        name = "user-" + "-".join("".join(c if c.isalnum() else "_" for c in part) for part in (user, *groups))
        return self.plane.client_kubeconfig(name, user, groups)

    def service_account_kubeconfig(self, namespace: str, account: str) -> Path:
        """Write a kubeconfig with a service account's token (valid one hour); waits for the account to exist."""

        def exists() -> bool:
            return self.has("serviceaccount", account, "-n", namespace)

        wait_for(f"the service account {namespace}/{account}", exists, ACCOUNT_TIMEOUT_S)
        request = json.dumps({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}})
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token"
        # Not `kubectl create token`, which Debian's kubectl does not have yet.
        token = json.loads(self.kubectl("create", "--raw", path, "-f", "-", stdin=request))["status"]["token"]
        return self.plane.token_kubeconfig(f"account-{namespace}-{account}", token, namespace)

    def as_user(self, kubeconfig: Path) -> Access:
        """Return access with another kubeconfig."""
        return Access(kubeconfig, self._kubectl)

    def down(self) -> None:
        """End exactly this cluster's processes and remove its data; the logs stay. Fine when it is down already."""
        with locked(self.folder):
            self._remove()

    def _remove(self) -> None:
        if self.node is not None:
            self.node.remove()
        self.processes.stop()
        self.plane.remove_data()
        State.forget(self.folder)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.down()


def existing() -> Access | None:
    """Return the user's own cluster when ARGOSY_E2E_EXISTING=1: the one that $KUBECONFIG names, if it answers.

    Raises ClusterUnavailableError when it is requested and does not answer.
    """
    if os.environ.get("ARGOSY_E2E_EXISTING") != "1":
        return None
    kubeconfig, kubectl = os.environ.get("KUBECONFIG"), shutil.which("kubectl")
    if not kubeconfig or kubectl is None:
        raise ClusterUnavailableError("ARGOSY_E2E_EXISTING=1 needs KUBECONFIG and the kubectl program")
    access = Access(Path(kubeconfig), Path(kubectl))
    if not access.ready():
        raise ClusterUnavailableError(f"the cluster of KUBECONFIG={kubeconfig} does not answer")
    return access


def _state(folder: Path, kind: str, address: str) -> State:
    state = State.load(folder)
    if state is None:
        state = State.new(kind, address)
        state.save(folder)
    if state.kind != kind:
        raise ClusterError(f"{folder} holds a cluster of kind {state.kind!r}, not {kind!r}: take it down first")
    return state
