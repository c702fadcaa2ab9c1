"""A node autoscaler: a fake node for each Pod that finds none.

As Karpenter and the Cluster Autoscaler do, it looks at Pods that the scheduler calls unschedulable, and adds a node if
that would have the labels that the Pod requires. It removes nothing.
"""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from e2e.cluster.access import Access
from e2e.cluster.background import Background
from e2e.cluster.client import core
from e2e.cluster.standins.fake import node, node_status
from e2e.cluster.standins.gpus import RESOURCE, Gpus

_EVERY_S = 0.5


class NodeAutoscaler(Background):
    """The loop: `with NodeAutoscaler(access, names, gpus): …`. It adds nodes of these names, each with the same GPUs.

    `added` are the names of those that it has added.
    """

    def __init__(self, access: Access, names: Iterable[str], gpus: Gpus) -> None:
        self._api, self._names, self._gpus = core(access), list(names), gpus
        self.added: list[str] = []
        self._answered: set[str] = set()
        super().__init__(lambda: self.repeat(self._look))

    def _look(self) -> None:
        pods: Any = self._api.list_pod_for_all_namespaces(field_selector="status.phase=Pending,spec.nodeName=")
        for pod in pods.items:
            plain = self._api.api_client.sanitize_for_serialization(pod)
            if pod.metadata.uid not in self._answered and self._names and self._helps(plain):
                self._answered.add(pod.metadata.uid)
                self._add(self._names.pop(0))
        self.stopping.wait(_EVERY_S)

    def _helps(self, pod: dict[str, Any]) -> bool:
        """Return whether a further node would take a Pod that has none."""
        conditions = pod.get("status", {}).get("conditions", ())
        waits = any(one["type"] == "PodScheduled" and one.get("reason") == "Unschedulable" for one in conditions)
        limits = (container.get("resources", {}).get("limits", {}) for container in pod["spec"]["containers"])
        gpus = sum(int(limit.get(RESOURCE, 0)) for limit in limits)
        return waits and 0 < gpus <= self._gpus.count and self._has_labels(pod["spec"])

    def _has_labels(self, spec: dict[str, Any]) -> bool:
        labels = node("new", self._gpus)["metadata"]["labels"]
        affinity = spec.get("affinity", {}).get("nodeAffinity", {})
        terms = affinity.get("requiredDuringSchedulingIgnoredDuringExecution", {}).get("nodeSelectorTerms", [{}])
        selected = spec.get("nodeSelector", {}).items() <= labels.items()
        return selected and any(_matches(term, labels) for term in terms)

    def _add(self, name: str) -> None:
        self._api.create_node(node(name, self._gpus))
        self._api.patch_node_status(name, {"status": node_status(self._gpus, datetime.now(UTC))})
        self.added.append(name)


def _matches(term: dict[str, Any], labels: dict[str, str]) -> bool:
    """Return whether a node with these labels and a new name matches; none does that is to have a certain name."""
    rules = term.get("matchExpressions", [])
    return "matchFields" not in term and all(_holds(rule, labels) for rule in rules)


def _holds(rule: dict[str, Any], labels: dict[str, str]) -> bool:
    if rule["operator"] == "Exists":
        return rule["key"] in labels
    return (labels.get(rule["key"]) in rule["values"]) is (rule["operator"] == "In")
