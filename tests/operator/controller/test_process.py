"""The operator's process: what it waits for, and how it ends."""

import asyncio
import logging
import os
import signal
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from aiohttp import web
from tests.operator.controller.bodies import model, pool
from tests.operator.controller.standin import StandIn, kubeconfig, operator, standing_in, status
from tests.waiting import until

from argosy.cluster.client import connection as connecting
from argosy.cluster.client.connection import Connection
from argosy.controller.process import Operator, Options
from argosy.render.workloads import Images

TAKEN = {
    "holderIdentity": "another",
    "leaseDurationSeconds": 3600,
    "renewTime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
}


@pytest.fixture
async def server() -> AsyncIterator[StandIn]:
    """Yield an API server with a pool and a model."""
    async with standing_in() as result:
        result.put("servingpools", pool())
        result.put("inferencemodels", model())
        yield result


def options(server: StandIn, folder: Path, *namespaces: str) -> Options:
    """Return the options of an operator of that API server."""
    images = Images("a", "b", "c")
    return Options(images, namespaces, host="127.0.0.1", port=0, kubeconfig=kubeconfig(server, folder))


def logged(caplog: pytest.LogCaptureFixture) -> str:
    """Return the text of the log."""
    return "\n".join(record.getMessage() for record in caplog.records)


async def test_sigterm_ends_it_at_once_and_gives_the_lease_up(server: StandIn, tmp_path: Path) -> None:
    log = tmp_path / "log"
    process = await operator(kubeconfig(server, tmp_path), log)
    try:
        await until(lambda: "everything is listed: 2 resources" in log.read_text())
        assert server.lease["spec"]["holderIdentity"]
        await asyncio.sleep(0.5)
        process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(60):
            assert await process.wait() == 0
    finally:
        if process.returncode is None:
            process.kill()
    assert server.lease["spec"]["holderIdentity"] == ""
    assert server.requests[-1][:2] == ("PUT", "/apis/coordination.k8s.io/v1/namespaces/default/leases/argosy-operator")


@pytest.mark.parametrize(
    ("refused", "namespaces", "named"),
    [
        ("/api/v1/nodes", (), "nodes"),
        ("/api/v1/configmaps", (), "configmaps"),
        ("/namespaces/b/ensembles", ("a", "b"), "ensembles"),
    ],
)
async def test_it_ends_where_it_may_not_read_what_it_needs(
    server: StandIn,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    refused: str,
    namespaces: tuple[str, ...],
    named: str,
) -> None:
    server.refused[refused] = status(403, f"{named} is forbidden")
    async with asyncio.timeout(60):
        assert await Operator(options(server, tmp_path, *namespaces)).run() == 1
    assert f"the operator cannot go on: {named} is forbidden" in logged(caplog)
    assert not [record for record in caplog.records if record.name == "argosy.controller.process" and record.exc_info]
    assert server.lease["spec"]["holderIdentity"] == ""


async def test_an_error_of_its_own_ends_it_with_a_trace(
    server: StandIn, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(_: object) -> None:
        raise KeyError("a bug")

    running = Operator(options(server, tmp_path))
    monkeypatch.setattr(running, "_act", broken)
    async with asyncio.timeout(60):
        assert await running.run() == 1
    records = [record for record in caplog.records if "cannot go on" in record.getMessage()]
    assert records
    assert all(record.exc_info is not None and "a bug" in record.getMessage() for record in records)


@pytest.mark.parametrize("path", ["/apis/policy/v1", "/api/v1/configmaps", "/api/v1/nodes"])
async def test_what_does_not_answer_is_queried_again(
    server: StandIn, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    caplog.set_level(logging.INFO)
    monkeypatch.setattr(connecting, "AGAIN_S", 0.05)
    server.refused[path] = web.Response(text="<html>a proxy</html>")
    running = asyncio.create_task(Operator(options(server, tmp_path)).run())
    await until(lambda: sum(requested == path for _, requested, _ in server.requests) > 1)
    server.refused[path] = status(500, "etcdserver: request timed out")
    await until(lambda: sum(requested == path for _, requested, _ in server.requests) > 3)
    assert not running.done()
    assert "everything is listed" not in logged(caplog)
    server.refused.clear()
    await until(lambda: "everything is listed: 2 resources" in logged(caplog))
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_nothing_is_decided_before_every_resource_is_listed(
    server: StandIn, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    server.refused["/ensembles"] = status(500, "etcdserver: request timed out")
    running = asyncio.create_task(Operator(options(server, tmp_path)).run())
    await until(lambda: server.watched("configmaps") > 0 and server.watched("inferencemodels") > 0)
    assert "everything is listed" not in logged(caplog)
    server.refused.clear()
    await until(lambda: "everything is listed: 2 resources" in logged(caplog))
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_a_replica_that_stands_by_answers_reviews_too(server: StandIn, tmp_path: Path) -> None:
    server.lease = {"metadata": {"name": "argosy-operator", "resourceVersion": "1"}, "spec": TAKEN}
    served, ended = asyncio.Event(), asyncio.Event()

    async def serve(_: Connection, started: Callable[[], None], failed: Callable[[str], None]) -> None:
        started()
        failed("")
        served.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    running = Operator(options(server, tmp_path), serve)
    task = asyncio.create_task(running.run())
    async with asyncio.timeout(60):
        await served.wait()
    assert server.watched("configmaps") == 0
    os.kill(os.getpid(), signal.SIGTERM)
    async with asyncio.timeout(60):
        assert await task == 0
    assert ended.is_set()


@pytest.mark.parametrize("wrong", ["kubeconfig", "authority", "port"])
async def test_what_keeps_it_from_starting_is_one_line(server: StandIn, tmp_path: Path, wrong: str) -> None:
    config, log = kubeconfig(server, tmp_path), tmp_path / "log"
    taken = server.url.rpartition(":")[2]
    if wrong == "kubeconfig":
        config.write_text("x: y")
    elif wrong == "authority":
        location = f'"server": "https://127.0.0.1:{taken}", "certificate-authority": "{config}"'
        config.write_text(config.read_text().replace(f'"server": "{server.url}"', location))
    process = await operator(config, log, (f"--port={taken}",) if wrong == "port" else ())
    async with asyncio.timeout(60):
        assert await process.wait() == 1
    lines = [line for line in log.read_text().splitlines() if "listening on port" not in line]
    assert len(lines) == 1
    named = f"127.0.0.1:{taken}" if wrong == "port" else str(config)
    assert named in lines[0]
