"""h2spec, the conformance suite, where it is at hand: `$H2SPEC` or the program `h2spec` on the path.

It is a Go program that no package index has, and to build it takes a Go compiler and GitHub. So nothing brings it, in
CI neither: the other tests here have its cases too, in Python.
"""

import asyncio
import os
import shutil

import pytest

from argosy_runtime.http2 import Http2Protocol, KeepAliveRules, Limits

from .playing import PREPARED, Echo, EchoApplication, EchoRoute

PROGRAM = os.environ.get("H2SPEC") or shutil.which("h2spec") or ""
BODY = b"what every test wants to read"


class Page(Echo):
    """Answers with a page, whatever is asked."""

    def answer(self) -> None:
        self.stream.respond(PREPARED, [BODY], len(BODY))


class PageApplication(EchoApplication):
    """One page."""

    def route(self, head: object) -> EchoRoute:
        return _PageRoute(self)


class _PageRoute(EchoRoute):
    def __init__(self, application: EchoApplication) -> None:
        self.application = application
        self.kind = Page


@pytest.mark.skipif(not PROGRAM, reason="h2spec is not here: build it from its sources and set $H2SPEC")
async def test_conformance() -> None:
    loop = asyncio.get_running_loop()
    # h2spec cannot send a frame larger than four megabytes, which is what one of its cases is about.
    limits, rules = Limits(frame_size=16384), KeepAliveRules(closing=1.0)
    server = await loop.create_server(
        lambda: Http2Protocol(PageApplication(), loop, lambda _: None, limits, rules), "127.0.0.1", 0
    )
    port = server.sockets[0].getsockname()[1]
    arguments = ["--host=127.0.0.1", f"--port={port}", "--path=/", "--strict"]
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(PROGRAM, *arguments, stdout=pipe, stderr=asyncio.subprocess.STDOUT)
    report, _ = await process.communicate()
    server.close()
    assert process.returncode == 0, report.decode()[-4000:]
