"""What tests ask of an API server of custom resources: objects of one namespace, written as the API has them."""

import json
from dataclasses import dataclass
from typing import Any

import requests
from e2e.cluster.plane.crd_servers import CrdServer
from e2e.cluster.waiting import wait_for

from argosy.api import API_VERSION
from argosy.api.crd.crds import DEFINITIONS, crd

Body = dict[str, Any]
PLURALS = {definition.kind.__name__: definition.plural for definition in DEFINITIONS}
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
MERGE, APPLY = "application/merge-patch+json", "application/apply-patch+yaml"


@dataclass(frozen=True, slots=True)
class Answer:
    """A status and the object, or the server's complaint."""

    status: int
    body: Body

    @property
    def right(self) -> bool:
        """True if the server accepted the request."""
        return self.status < 300

    @property
    def message(self) -> str:
        """The server's message about a refusal."""
        return str(self.body.get("message", ""))


class Asking:
    """One server."""

    def __init__(self, server: CrdServer) -> None:
        self.version = server.name
        self._url = server.url
        self._session = requests.Session()
        self._session.trust_env = False  # a proxy or other authorities of the machine's
        self._session.verify = str(server.authority)

    def close(self) -> None:
        """Close its connections."""
        self._session.close()

    def send(
        self, method: str, path: str, body: Body | None = None, kind: str = "application/json", **query: str
    ) -> Answer:
        """Ask for a path of the API."""
        data = None if body is None else json.dumps(body)
        answer = self._session.request(
            method, self._url + path, params=query, data=data, headers={"Content-Type": kind}, timeout=60
        )
        reported = answer.headers.get("Content-Type", "").startswith("application/json")
        return Answer(answer.status_code, answer.json() if reported else {"message": answer.text})

    def install(self, definitions: list[Body]) -> None:
        """Create these CRDs, or put them in place of those that are there."""
        for definition in definitions:
            where = f"{CRDS}/{definition['metadata']['name']}"
            done = self.send("PATCH", where, definition, APPLY, fieldManager="tests", fieldValidation="Strict")
            assert done.right, done.message
        for kind in PLURALS:
            wait_for(
                f"{kind} at Kubernetes {self.version}", lambda kind=kind: self.send("GET", path(kind)).right, 60, 0.05
            )

    def create(self, body: Body, *, dry: bool = False) -> Answer:
        """Create an object; `dry`: the server says what it would be, and keeps nothing."""
        query = {"dryRun": "All"} if dry else {}
        return self.send(
            "POST", path(body["kind"], body["metadata"]["namespace"]), body, fieldValidation="Strict", **query
        )

    def apply(self, body: Body, manager: str) -> Answer:
        """Apply it server-side in the name of a manager, whose conflicts are refused."""
        where = path(body["kind"], body["metadata"]["namespace"], body["metadata"]["name"])
        return self.send("PATCH", where, body, APPLY, fieldManager=manager, fieldValidation="Strict")

    def patch(self, kind: str, namespace: str, name: str, change: Body, part: str = "") -> Answer:
        """Merge a change into an object, or into a part of it such as `/status`."""
        return self.send("PATCH", path(kind, namespace, name) + part, change, MERGE)


def path(kind: str, namespace: str = "", name: str = "") -> str:
    """Return the path of objects of a kind, of those of a namespace, or of one of them."""
    inside = f"/namespaces/{namespace}" if namespace else ""
    return f"/apis/{API_VERSION}{inside}/{PLURALS[kind]}" + (f"/{name}" if name else "")


def current() -> list[Body]:
    """Return the CRDs as they are generated."""
    return [crd(definition) for definition in DEFINITIONS]
