"""The chart's release, by Helm's own code."""

import asyncio
import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from e2e.cluster import Access
from e2e.cluster.waiting import wait_for
from e2e.deployed.builds import Images
from e2e.parts import podprocesses
from e2e.starting import give_up

CHART = Path(__file__).parents[2] / "charts/argosy"
NAMESPACE = "argosy-system"
NAME = "argosy"
LEASE = NAME
LABEL = "app.kubernetes.io/name=argosy"


def values(images: Images) -> dict[str, Any]:
    """Return the chart's values for images that are on the node already."""
    # One image with all that the tests serve stands in for those of the targets.
    targets = dict.fromkeys(("runtime", "runtimeCuda", "runtimeVllm", "runtimeTensorrtLlm"), _named(images.runtime))
    return {
        "images": {"pullPolicy": "Never", "operator": _named(images.operator), **targets},
        # Both replicas start on one small node, next to servers with small requests.
        "resources": {"requests": {"cpu": "50m", "memory": "128Mi"}, "limits": {"memory": "512Mi"}},
    }


def install(access: Access, settings: Mapping[str, Any]) -> None:
    """Install or upgrade the release with these values of the chart, and wait until every replica is ready."""
    library = helm()
    config = library.Configuration(NAMESPACE, str(access.kubeconfig))
    installed = access.kubectl("get", "secrets", "-n", NAMESPACE, "-l", f"owner=helm,name={NAME}", "-o", "name")
    if installed:
        action = library.Upgrade(config).run(NAME, str(CHART), dict(settings), wait=False)
    else:
        action = library.Install(config).run(NAME, str(CHART), dict(settings), create_namespace=True, wait=False)
    asyncio.run(action)
    wait(access)


def wait(access: Access) -> None:
    """Wait until every replica is ready."""
    words = ("rollout", "status", f"deployment/{NAME}", "-n", NAMESPACE, "--timeout=120s")
    done = access.kubectl_process(*words, timeout_s=130)
    assert done.returncode == 0, f"{done.stderr}\n{access.kubectl('logs', '-n', NAMESPACE, '-l', LABEL, '--tail=20')}"


def uninstall(access: Access) -> None:
    """Uninstall it, and wait until its Pods are gone."""
    library = helm()
    config = library.Configuration(NAMESPACE, str(access.kubeconfig))
    asyncio.run(library.Uninstall(config).run(NAME, timeout=60))
    # A kubelet that has to share its cores takes its time to tell of the end.
    wait_for("the operator's Pods to end", lambda: not access.read("pods", "-n", NAMESPACE)["items"], 150)


def leader(access: Access) -> str:
    """Return the Pod that is the leader now; empty while none is."""
    lease = access.read("lease", LEASE, "-n", NAMESPACE)
    holder: str = lease["spec"].get("holderIdentity") or ""
    return holder.rpartition("_")[0]


def leader_process(access: Access) -> int:
    """Return the pid of the leader, on the machine's own node; 0 while there is none."""
    name = leader(access)
    pods = [pod for pod in access.read("pods", "-n", NAMESPACE)["items"] if pod["metadata"]["name"] == name]
    return next((pid for pod in pods for pid in podprocesses.find(pod, "argosy operator")), 0)


def helm() -> Any:
    """Return Helm as a library."""
    try:
        return importlib.import_module("helm_sdkpy")
    except ImportError as error:
        give_up(f"Helm's library is missing: pip install --ignore-requires-python helm-sdkpy ({error})")


def _named(image: str) -> dict[str, str]:
    repository, _, tag = image.rpartition(":")
    return {"repository": repository, "tag": tag}
