"""Every state that a resource was in, as a watch saw them."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from kubernetes import watch

from e2e.cluster import Access
from e2e.cluster.client import custom
from e2e.declared.resources import GROUP, VERSION


@dataclass(slots=True)
class Seen:
    """Bodies, in their order."""

    bodies: list[dict[str, Any]] = field(default_factory=list)

    def false_readiness(self) -> list[dict[str, Any]]:
        """Return the statuses that claim Ready for the newest spec and also that they are not done with it."""
        return [body["status"] for body in self.bodies if _is_false(body)]

    def conditions(self, type_: str) -> list[tuple[str, str]]:
        """Return status and reason of one condition, each change once."""
        changes: list[tuple[str, str]] = []
        for body in self.bodies:
            for condition in body.get("status", {}).get("conditions", ()):
                if condition["type"] == type_ and (condition["status"], condition["reason"]) not in changes[-1:]:
                    changes.append((condition["status"], condition["reason"]))
        return changes


@contextmanager
def watching(access: Access, namespace: str, plural: str, name: str) -> Iterator[Seen]:
    """Record a resource's states while the block runs, beginning with its present one."""
    seen, stream, stopping = Seen(), watch.Watch(), threading.Event()
    listing = custom(access).list_namespaced_custom_object

    def follow() -> None:
        version = None
        while not stopping.is_set():
            events = stream.stream(
                listing, GROUP, VERSION, namespace, plural, field_selector=f"metadata.name={name}",
                resource_version=version, timeout_seconds=1,
            )  # fmt: skip
            for event in events:
                version = event["object"]["metadata"]["resourceVersion"]
                seen.bodies.append(event["object"])

    thread = threading.Thread(target=follow)
    thread.start()
    try:
        yield seen
    finally:
        stopping.set()
        thread.join()


def _is_false(body: dict[str, Any]) -> bool:
    status = body.get("status", {})
    conditions = {condition["type"]: condition["status"] for condition in status.get("conditions", ())}
    if conditions.get("Ready") != "True" or status.get("observedGeneration") != body["metadata"]["generation"]:
        return False
    desired = body["spec"].get("version", 1)
    serving = [version["version"] for version in status.get("versions", ()) if version["state"] == "Serving"]
    return conditions.get("Reconciling") == "True" or desired not in serving
