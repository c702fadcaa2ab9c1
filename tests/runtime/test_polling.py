"""Looking for changes in the repository again and again, whatever one look ends in."""

import asyncio
from pathlib import Path

import pytest

from argosy_runtime.flags import parse
from argosy_runtime.server import Server


async def test_a_look_that_fails_is_not_the_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    flags = [
        "--model-control-mode=poll",
        "--repository-poll-secs=0.01",
        *(f"--allow-{it}=0" for it in ("http", "grpc")),
    ]
    server = Server(parse([f"--model-repository={tmp_path}", "--allow-metrics=0", *flags]))
    scan, looks, done = server.dataplane.registry.scan, 0, asyncio.Event()
    loop = asyncio.get_running_loop()

    def fails_twice() -> object:
        nonlocal looks
        looks += 1
        if looks in (2, 3):
            raise OSError(116, "Stale file handle")
        if looks == 4:
            loop.call_soon_threadsafe(done.set)
        return scan()

    monkeypatch.setattr(server.dataplane.registry, "scan", fails_twice)
    await server.start()
    await asyncio.wait_for(done.wait(), 30)
    await server.stop()
    assert caplog.text.count("Stale file handle") >= 2
