"""A stand-in for an API server that has Jobs, with a kubelet that runs their containers on this machine."""

import asyncio
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml
from aiohttp import web

NAMESPACE = "default"


class JobCluster:
    """One namespace. `pod`: that of the Job, as a test sets it; None: its container is run. `deleted`: the Jobs that
    were removed. `objects`: further ones, by plural and name.
    """

    def __init__(self) -> None:
        self.job: dict[str, Any] = {}
        self.job_status: dict[str, Any] = {}
        self.deleted: list[str] = []
        self.pod: dict[str, Any] | None = None
        self.log = ""
        self.objects: dict[tuple[str, str], dict[str, Any]] = {}
        self.servers: list[dict[str, Any]] = []
        self.process: subprocess.Popen[str] | None = None
        self.url = ""

    def container(self) -> dict[str, Any]:
        """Return the container of the Job's Pod."""
        (container,) = self.job["spec"]["template"]["spec"]["containers"]
        return dict(container)

    def end(self) -> None:
        """End the container's process."""
        if self.process is not None:
            self.process.terminate()
            self.process.wait(20)

    async def answer(self, request: web.Request) -> web.Response:
        """Answer any request."""
        parts = request.path.strip("/").split("/")
        if request.method == "POST" and parts[-1] == "jobs":
            return self._create(await request.json())
        if request.method == "DELETE":
            self.deleted.append(parts[-1])
            self.end()
            return web.json_response({"kind": "Status", "status": "Success"})
        if parts[-1] == "log":
            return web.Response(text=self.log)
        if parts[-1] == "pods":
            of_job = request.query.get("labelSelector", "").startswith("job-name")
            return web.json_response({"metadata": {}, "items": [self._pod()] if of_job else self.servers})
        body = (
            {**self.job, "status": self.job_status} if parts[-2] == "jobs" else self.objects.get((parts[-2], parts[-1]))
        )
        if body is None:
            return web.json_response({"kind": "Status", "code": 404, "message": "not found"}, status=404)
        return web.json_response(body)

    def _create(self, body: dict[str, Any]) -> web.Response:
        name = body["metadata"].pop("generateName") + "x7k2p"
        self.job = {**body, "metadata": {**body["metadata"], "name": name, "uid": "u-1"}}
        if self.pod is None:
            container = self.container()
            variables = {one["name"]: one.get("value", "") for one in container["env"]}
            self.process = subprocess.Popen(
                [sys.executable, *container["command"][1:]],
                env={**os.environ, **variables},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
            threading.Thread(target=self._read, daemon=True).start()
        return web.json_response(self.job, status=201)

    def _read(self) -> None:
        assert self.process is not None
        assert self.process.stdout is not None
        with self.process.stdout as output:
            for line in output:
                self.log += line

    def _pod(self) -> dict[str, Any]:
        if self.pod is not None:
            return {"metadata": {"name": "pod-1"}, **self.pod}
        assert self.process is not None
        phase = {None: "Running", 0: "Succeeded"}.get(self.process.poll(), "Failed")
        return {"metadata": {"name": "pod-1"}, "status": {"phase": phase}}


@contextmanager
def job_cluster(folder: Path) -> Iterator[tuple[JobCluster, Path]]:
    """Yield a stand-in, which serves in a thread, and the kubeconfig that leads to it."""
    cluster, loop, up = JobCluster(), asyncio.new_event_loop(), threading.Event()

    over = asyncio.Event()

    async def serve() -> None:
        runner = web.ServerRunner(web.Server(cluster.answer))
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        cluster.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        up.set()
        await over.wait()
        await runner.cleanup()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),), daemon=True)
    thread.start()
    up.wait(10)
    kubeconfig = folder / "kubeconfig"
    named = {"cluster": "here", "user": "me", "namespace": NAMESPACE}
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "here",
        "contexts": [{"name": "here", "context": named}],
        "clusters": [{"name": "here", "cluster": {"server": cluster.url}}],
        "users": [{"name": "me", "user": {}}],
    }
    kubeconfig.write_text(yaml.safe_dump(document))
    try:
        yield cluster, kubeconfig
    finally:
        loop.call_soon_threadsafe(over.set)
        thread.join(10)
        loop.close()
        cluster.end()


def body_of(text: str) -> dict[str, Any]:
    """Return a manifest as the API server has it."""
    return json.loads(json.dumps(yaml.safe_load(text))) | {"status": {}}
