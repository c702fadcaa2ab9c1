"""The namespace of a file of tests, and reads of its objects."""

import json
import re
import subprocess
from collections.abc import Callable
from itertools import pairwise
from typing import Any

from e2e.cluster import Access
from e2e.cluster.waiting import poll, wait_for
from e2e.declared.resources import Body

KINDS = ("servingpools", "inferencemodels", "ensembles")
OWN = ("deployments", "jobs", "configmaps", "services", "serviceaccounts", "roles", "rolebindings", "networkpolicies",
       "poddisruptionbudgets", "controllerrevisions", "pods")  # fmt: skip
MANAGED = "app.kubernetes.io/managed-by=argosy"
PATIENCE_S = 120.0
MEASURED = "language"
"""The part of a status that follows measurements."""
LOOK_S = 0.4
"""Seconds between two polls, which take time of the processes on this machine."""


class Namespace:
    """A namespace of the cluster. `namespace("delete", "pod", "x")` runs kubectl there; reads are by HTTP."""

    def __init__(self, access: Access, name: str) -> None:
        self.access, self.name = access, name

    def __call__(self, *words: str, stdin: str | None = None, timeout_s: float = 60.0) -> str:
        return self.access.kubectl("-n", self.name, *words, stdin=stdin, timeout_s=timeout_s)

    def start(self, *words: str) -> subprocess.Popen[str]:
        """Start a kubectl there that its caller writes to and reads from, and ends."""
        return self.access.start_kubectl("-n", self.name, *words)

    def create(self) -> None:
        """Make it, and wait until Pods may be created in it. Controllers look for an API server that was away only once
        a minute.
        """
        self.access.kubectl("create", "namespace", self.name)
        wait_for("the default account", lambda: self.access.has("serviceaccount/default", "-n", self.name), PATIENCE_S)

    def delete(self, *, wait: bool = True) -> None:
        """Delete it with all that is in it, and wait until it is gone."""
        words = ("--timeout=120s",) if wait else ("--wait=false",)
        self.access.kubectl("delete", "namespace", self.name, *words, timeout_s=130)

    def read(self, *words: str) -> Any:
        """Return what `kubectl get WORDS -o json` prints in it, parsed; without kubectl."""
        return self.access.read(*words, "-n", self.name)

    def apply(self, *bodies: Body) -> str:
        """Run kubectl apply, as a user does; return what it prints."""
        return self("apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": bodies}))

    def ready(self, *resources: str, timeout_s: float = PATIENCE_S) -> None:
        """Wait for the condition Ready of resources as `kind/name`; of all where none is named."""
        # `kubectl wait --all` fails where a kind has none.
        named = resources or tuple(self.names())
        try:
            self("wait", "--for=condition=Ready", *named, f"--timeout={timeout_s:.0f}s", timeout_s=timeout_s + 10)
        except Exception as error:
            raise AssertionError(f"{error}\n{self.story()}") from None

    def names(self) -> list[str]:
        """Return every resource of Argosy's, as `kind/name`."""
        return self._listed(",".join(KINDS))

    def status(self, resource: str) -> Any:
        """Return a resource's status; empty before there is one."""
        return self.read(resource).get("status", {})

    def columns(self, resource: str) -> dict[str, str]:
        """Return the row that `kubectl get` prints of a resource, by the heads of its columns; "" for a blank."""
        head, row = self("get", resource).splitlines()
        # A head and its values begin at one offset, and blanks separate both from the next column.
        starts = [match.start() for match in re.finditer(r"(?<!\S)\S", head)]
        return {head[start:].split()[0]: row[start:end].strip() for start, end in pairwise([*starts, None])}

    def condition(self, resource: str, type_: str) -> dict[str, Any]:
        """Return one of its conditions; empty where it has none of that type."""
        conditions = self.status(resource).get("conditions", ())
        return next((condition for condition in conditions if condition["type"] == type_), {})

    def says(self, resource: str, type_: str, status: str, reason: str, timeout_s: float = PATIENCE_S) -> str:
        """Wait until a condition has that status and reason, and return its message."""

        def so() -> bool:
            condition = self.condition(resource, type_)
            return (condition.get("status"), condition.get("reason")) == (status, reason)

        self.until(f"{type_}={status} ({reason}) of {resource}", so, timeout_s)
        return str(self.condition(resource, type_).get("message", ""))

    def until(
        self, what: str, condition: Callable[[], bool], timeout_s: float = PATIENCE_S, every_s: float = LOOK_S
    ) -> None:
        """Wait for a condition. Raises AssertionError with a description of the namespace after the timeout."""
        if not poll(condition, timeout_s, every_s):
            raise AssertionError(f"{what}: not within {timeout_s:.0f} s\n{self.story()}")

    def server_pods(self, pool: str) -> list[dict[str, Any]]:
        """Return the Pods of a pool's servers that are not being deleted."""
        pods = self.read("pods", "-l", f"argosy.dev/pool={pool}")["items"]
        return [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]

    def server_uids(self, pool: str) -> set[str]:
        """Return the UIDs of those Pods."""
        return {pod["metadata"]["uid"] for pod in self.server_pods(pool)}

    def own(self) -> list[str]:
        """Return the objects that the operator made, and their Pods, as `kind/name`."""
        return self._listed(",".join(OWN), "-l", MANAGED)

    def _listed(self, *words: str) -> list[str]:
        return sorted(f"{body['kind'].lower()}/{body['metadata']['name']}" for body in self.read(*words)["items"])

    def states(self) -> dict[str, object]:
        """Return the resourceVersion of each object; of Argosy's resources the contents, without what was measured in
        the last half minute, which changes when requests end.
        """
        listed = self.read(",".join((*KINDS, *OWN)))["items"]
        return {f"{body['kind']}/{body['metadata']['name']}": _state(body) for body in listed}

    def story(self) -> str:
        """Return a description of the namespace, for a test that fails."""
        lines = []
        for name in self.names():
            conditions = self.status(name).get("conditions", ())
            lines += [f"{name}: {c['type']}={c['status']} {c['reason']}: {c.get('message', '')}" for c in conditions]
        lines.append(self.access.kubectl_process("get", "pods", "-n", self.name, "-o", "wide").stdout)
        for pod in self.read("pods", "-l", "argosy.dev/server")["items"]:
            for container in ("server", "agent"):
                log = self.access.kubectl_process(
                    "logs", pod["metadata"]["name"], "-c", container, "-n", self.name, "--tail=15"
                )
                lines += [f"--- {pod['metadata']['name']} {container}", log.stdout + log.stderr]
        for pod in self.read("pods", "-l", "argosy.dev/build")["items"]:
            log = self.access.kubectl_process("logs", pod["metadata"]["name"], "-n", self.name, "--tail=15")
            lines += [f"--- {pod['metadata']['name']}", log.stdout + log.stderr]
        operator = self.access.kubectl_process("logs", "-n", "argosy-system", "-l", "app.kubernetes.io/name=argosy",
                                               "--tail=15", "--prefix")  # fmt: skip
        return "\n".join([*lines, "--- operator", operator.stdout])


def _state(body: dict[str, Any]) -> object:
    if not body["apiVersion"].startswith("argosy.dev/"):
        return body["metadata"]["resourceVersion"]
    metadata = _without(body["metadata"], "resourceVersion", "managedFields")
    return {"metadata": metadata, "spec": body["spec"], "status": _without(body.get("status", {}), MEASURED)}


def _without(fields: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if name not in names}
