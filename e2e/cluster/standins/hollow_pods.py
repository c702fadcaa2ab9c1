"""An admission webhook that removes from each new Pod what a hollow node cannot do.

A hollow kubelet refuses a container with a sub-path, probes an address where nothing listens, and ends no container, so
those after an init container never start.
"""

import base64
import json
import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from e2e.cluster.cluster import Cluster

NAME = "hollow-pods"
_PROBES = ("startupProbe", "livenessProbe", "readinessProbe")


class HollowPods:
    """The webhook: `with HollowPods(cluster): …`. It looks at every Pod that is created meanwhile."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*cluster.plane.authority.server(NAME, ["localhost"], ["127.0.0.1"]))
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        self._cluster.apply(json.dumps(self._configuration()))
        return self

    def __exit__(self, *_: object) -> None:
        self._cluster.kubectl("delete", "mutatingwebhookconfiguration", NAME, "--ignore-not-found")
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _configuration(self) -> dict[str, Any]:
        authority = base64.b64encode(self._cluster.plane.authority.certificate.read_bytes()).decode()
        address = f"https://127.0.0.1:{self._server.server_port}/"
        hook = {
            "name": "hollow.argosy.dev",
            "clientConfig": {"url": address, "caBundle": authority},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}],
            "failurePolicy": "Fail",
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        }
        return {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "MutatingWebhookConfiguration",
            "metadata": {"name": NAME},
            "webhooks": [hook],
        }


def patch(pod: dict[str, Any]) -> list[dict[str, str]]:
    """Return the JSON patch that makes a Pod one for a hollow node."""
    paths = ["/spec/initContainers"] if "initContainers" in pod["spec"] else []
    for index, container in enumerate(pod["spec"]["containers"]):
        path = f"/spec/containers/{index}"
        paths += [f"{path}/{probe}" for probe in _PROBES if probe in container]
        mounts = enumerate(container.get("volumeMounts", ()))
        paths += [f"{path}/volumeMounts/{number}/subPath" for number, mount in mounts if "subPath" in mount]
    return [{"op": "remove", "path": path} for path in paths]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        request = review["request"]
        text = base64.b64encode(json.dumps(patch(request["object"])).encode()).decode()
        answer = {"uid": request["uid"], "allowed": True, "patchType": "JSONPatch", "patch": text}
        body = json.dumps({"apiVersion": review["apiVersion"], "kind": review["kind"], "response": answer}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Log nothing: a line for each Pod is of no use."""
