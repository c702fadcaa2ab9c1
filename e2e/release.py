"""The chart's release, by Helm's own code."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from e2e.builds import Images
from e2e.cluster import Access
from e2e.cluster.waiting import wait_for

CHART = Path(__file__).parents[1] / "charts/argosy"
NAMESPACE = "argosy-system"
NAME = "argosy"
LEASE = NAME
LABEL = "app.kubernetes.io/name=argosy"


def values(images: Images) -> dict[str, Any]:
    """The chart's values for images that are on the node already."""
    return {
        "images": {"pullPolicy": "Never", "operator": _named(images.operator), "runtime": _named(images.runtime)},
        # Both replicas start on one small node, beside servers that ask for little.
        "resources": {"requests": {"cpu": "50m", "memory": "128Mi"}, "limits": {"memory": "512Mi"}},
    }


def install(access: Access, given: Mapping[str, Any]) -> None:
    """Install it, or change what is installed, and wait until every replica is ready."""
    helm_sdkpy = _helm()
    config = helm_sdkpy.Configuration(NAMESPACE, str(access.kubeconfig))
    installed = access.kubectl("get", "secrets", "-n", NAMESPACE, "-l", f"owner=helm,name={NAME}", "-o", "name")
    if installed:
        action = helm_sdkpy.Upgrade(config).run(NAME, str(CHART), dict(given), wait=False)
    else:
        action = helm_sdkpy.Install(config).run(NAME, str(CHART), dict(given), create_namespace=True, wait=False)
    asyncio.run(action)
    wait(access)


def wait(access: Access) -> None:
    """Wait until every replica is ready."""
    words = ("rollout", "status", f"deployment/{NAME}", "-n", NAMESPACE, "--timeout=120s")
    done = access.kubectl_process(*words, timeout_s=130)
    assert done.returncode == 0, f"{done.stderr}\n{access.kubectl('logs', '-n', NAMESPACE, '-l', LABEL, '--tail=20')}"


def uninstall(access: Access) -> None:
    """Uninstall it, and wait until its Pods are gone."""
    helm_sdkpy = _helm()
    config = helm_sdkpy.Configuration(NAMESPACE, str(access.kubeconfig))
    asyncio.run(helm_sdkpy.Uninstall(config).run(NAME, timeout=60))
    wait_for("the operator's Pods to end", lambda: not access.kubectl("get", "pods", "-n", NAMESPACE, "-o", "name"), 60)


def leader(access: Access) -> str:
    """The Pod that acts now; empty while none does."""
    lease = access.json("get", "lease", LEASE, "-n", NAMESPACE)
    holder: str = lease["spec"].get("holderIdentity") or ""
    return holder.rpartition("_")[0]


def _helm() -> Any:
    reason = "Helm's library is missing: pip install --ignore-requires-python helm-sdkpy"
    return pytest.importorskip("helm_sdkpy", reason=reason)


def _named(image: str) -> dict[str, str]:
    repository, _, tag = image.rpartition(":")
    return {"repository": repository, "tag": tag}
