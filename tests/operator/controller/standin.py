"""A stand-in for an API server: lists, watches and a lease, which fail as a test sets it."""

import asyncio
import itertools
import json
import sys
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from aiohttp import web

GROUP = "/apis/argosy.dev/v1alpha1"
KINDS = {"inferencemodels": "InferenceModel", "ensembles": "Ensemble", "servingpools": "ServingPool"}


def resources(api_version: str, kinds: Mapping[str, str], namespaced: bool) -> dict[str, Any]:
    """Return a group's discovery document."""
    verbs = ["get", "list", "watch", "patch"]
    entries = [
        {"name": plural, "kind": kind, "singularName": kind.lower(), "namespaced": namespaced, "verbs": verbs}
        for plural, kind in kinds.items()
    ]
    return {"kind": "APIResourceList", "groupVersion": api_version, "resources": entries}


VERSION = {"groupVersion": "argosy.dev/v1alpha1", "version": "v1alpha1"}
FIXED: Mapping[str, dict[str, Any]] = {
    "/version": {"major": "1", "minor": "30", "gitVersion": "v1.30.0"},
    "/api": {"kind": "APIVersions", "versions": ["v1"]},
    "/api/v1": resources("v1", {"namespaces": "Namespace"}, namespaced=False),
    "/apis": {
        "kind": "APIGroupList",
        "groups": [{"name": "argosy.dev", "versions": [VERSION], "preferredVersion": VERSION}],
    },
    GROUP: resources("argosy.dev/v1alpha1", KINDS, namespaced=True),
    "/apis/policy/v1": {"resources": [{"name": "poddisruptionbudgets"}]},
}

ABSENT = ("/apis/inference.networking.k8s.io/v1",)
"""API versions that this server does not have."""


class StandIn:
    """Objects by plural. `refused`: other responses, by the end of a path; `requests`: verb, path and Accept header."""

    def __init__(self) -> None:
        self.objects: dict[str, dict[str, dict[str, Any]]] = {}
        self.refused: dict[str, web.Response] = {}
        self.requests: list[tuple[str, str, str]] = []
        self.lease: dict[str, Any] = {}
        self.url = ""
        self._versions = itertools.count(100)
        self._watches: dict[str, list[asyncio.Queue[dict[str, Any]]]] = {}

    def put(self, plural: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Create or change an object and notify the watches."""
        result: dict[str, Any] = json.loads(json.dumps(body))
        metadata = {"creationTimestamp": "2026-01-01T00:00:00Z", "resourceVersion": str(next(self._versions))}
        result["metadata"] |= metadata
        registered = self.objects.setdefault(plural, {})
        self._notify(
            plural, {"type": "MODIFIED" if body["metadata"]["name"] in registered else "ADDED", "object": result}
        )
        registered[body["metadata"]["name"]] = result
        return result

    def delete(self, plural: str, name: str, untold: bool = False) -> None:
        """Delete an object; `untold`: without notifying the watches."""
        body = self.objects[plural].pop(name)
        body["metadata"]["resourceVersion"] = str(next(self._versions))
        if not untold:
            self._notify(plural, {"type": "DELETED", "object": body})

    def fail(self, plural: str, code: int) -> None:
        """End every watch of a kind with an error."""
        self._notify(plural, {"type": "ERROR", "object": {"kind": "Status", "code": code, "message": "it broke"}})

    def watched(self, plural: str) -> int:
        """Return the number of watches of a kind."""
        return len(self._watches.get(plural, ()))

    def accepted(self, verb: str, plural: str) -> list[str]:
        """Return the Accept headers of the requests for a kind."""
        return [
            accept for requested, path, accept in self.requests if requested == verb and path.endswith(f"/{plural}")
        ]

    def _notify(self, plural: str, event: dict[str, Any]) -> None:
        for queue in self._watches.get(plural, ()):
            queue.put_nowait(event)

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Answer any request."""
        verb = "watch" if request.query.get("watch") else request.method
        self.requests.append((verb, request.path, request.headers.get("Accept", "")))
        for end, response in self.refused.items():
            if request.path.endswith(end):
                return web.Response(status=response.status, body=response.body, content_type=response.content_type)
        if request.path in FIXED:
            return web.json_response(FIXED[request.path])
        if request.path in ABSENT:
            return status(404, "the server could not find the requested resource")
        if "/customresourcedefinitions/" in request.path:
            return status(403, "not for you")
        if "/leases" in request.path:
            return await self._lease(request)
        plural = request.path.rpartition("/")[2]
        return await self._watch(request, plural) if verb == "watch" else self._list(request, plural)

    async def _lease(self, request: web.Request) -> web.StreamResponse:
        if request.method in ("POST", "PUT"):
            self.lease = await request.json()
            self.lease["metadata"]["resourceVersion"] = str(next(self._versions))
        return web.json_response(self.lease) if self.lease else status(404, "none")

    def _list(self, request: web.Request, plural: str) -> web.Response:
        items = [_represented(request, body) for body in self.objects.get(plural, {}).values()]
        version = {"resourceVersion": str(next(self._versions))}
        return web.json_response({"kind": "List", "metadata": version, "items": items})

    async def _watch(self, request: web.Request, plural: str) -> web.StreamResponse:
        stream = web.StreamResponse()
        await stream.prepare(request)
        mine = asyncio.Queue[dict[str, Any]]()
        self._watches.setdefault(plural, []).append(mine)
        try:
            while True:
                event = await mine.get()
                shown = (
                    event if event["type"] == "ERROR" else {**event, "object": _represented(request, event["object"])}
                )
                await stream.write(json.dumps(shown).encode() + b"\n")
                if event["type"] == "ERROR":
                    return stream
        finally:
            self._watches[plural].remove(mine)


def status(code: int, message: str) -> web.Response:
    """Return an API server's error."""
    return web.json_response({"kind": "Status", "code": code, "message": message}, status=code)


def _represented(request: web.Request, body: dict[str, Any]) -> dict[str, Any]:
    if "PartialObjectMetadata" not in request.headers.get("Accept", ""):
        return body
    return {"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": body["metadata"]}


@asynccontextmanager
async def standing_in() -> AsyncIterator[StandIn]:
    """Yield a stand-in that listens."""
    server = StandIn()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", server.answer)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, port = runner.addresses[0]
    server.url = f"http://{host}:{port}"
    try:
        yield server
    finally:
        await runner.cleanup()


def kubeconfig(server: StandIn, folder: Path) -> Path:
    """Write a kubeconfig that leads to the stand-in."""
    return kubeconfig_of(server.url, folder)


def kubeconfig_of(url: str, folder: Path) -> Path:
    """Write a kubeconfig that leads to a URL."""
    location = folder / "kubeconfig"
    named = {
        "clusters": [{"name": "c", "cluster": {"server": url}}],
        "users": [{"name": "u", "user": {"token": "t"}}],
        "contexts": [{"name": "there", "context": {"cluster": "c", "user": "u"}}],
    }
    location.write_text(json.dumps({"apiVersion": "v1", "kind": "Config", "current-context": "there", **named}))
    return location


async def operator(config: Path, log: Path, more: Collection[str] = ()) -> Process:
    """Start the operator's process."""
    flags = (f"--kubeconfig={config}", "--host=127.0.0.1", "--port=0", *more)
    with log.open("w") as out:
        return await asyncio.create_subprocess_exec(
            sys.executable, "-m", "argosy.cli", "operator", *flags, stdout=out, stderr=asyncio.subprocess.STDOUT
        )
