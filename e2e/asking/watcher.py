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
        return [each["status"] for each in self.bodies if _is_false(each)]

    def conditions(self, type_: str) -> list[tuple[str, str]]:
        """Return status and reason of one condition, each change once."""
        found: list[tuple[str, str]] = []
        for body in self.bodies:
            for each in body.get("status", {}).get("conditions", ()):
                if each["type"] == type_ and (each["status"], each["reason"]) not in found[-1:]:
                    found.append((each["status"], each["reason"]))
        return found


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
    conditions = {each["type"]: each["status"] for each in status.get("conditions", ())}
    if conditions.get("Ready") != "True" or status.get("observedGeneration") != body["metadata"]["generation"]:
        return False
    wanted = body["spec"].get("version", 1)
    serving = [each["version"] for each in status.get("versions", ()) if each["state"] == "Serving"]
    return conditions.get("Reconciling") == "True" or wanted not in serving
