"""An activator from its start to its end: its sources, its reports, its listeners."""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from argosy_agent.contract.activation import Activation, QueuedRequests, parse_part, queued_text
from argosy_agent.contract.fields import DocumentError
from argosy_agent.publisher import DesiredSource, Publisher, PublishError, StateSink
from argosy_common.idle import IdleWait

from .flags import Flags
from .grpc.calls import Calls
from .grpc.channels import Channels
from .grpc.listener import GrpcListener
from .http.bodies import BodyBudget
from .http.connection import Connection
from .http.listener import Listener, exposing
from .members import Parts
from .metrics import Metrics
from .pending import PendingRequests
from .spans import Spans

LOG = logging.getLogger(__name__)
IDLE_POLL_S = 0.2
LAST_SPANS_S = 5.0
"""How long the end may take for spans that are not sent yet."""


class Activator:
    """An activator.

    `source` returns the source of a part of the members, by its number; `sink` receives the requests that wait.
    """

    def __init__(self, flags: Flags, source: Callable[[int], DesiredSource], sink: StateSink) -> None:
        self._flags, self._source, self._sink = flags, source, sink
        self._parts, self._following = Parts(), dict[int, asyncio.Task[None]]()
        self._followed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._metrics, self._channels = Metrics(), Channels()
        loop = asyncio.get_running_loop()
        self._publisher = Publisher(sink, loop.time, queued_text, lambda requests: sorted(requests.queued))
        self._pending = PendingRequests(flags.limits, self)
        self._bodies = BodyBudget(flags.limits.size)
        self._informed = self._ending = False
        self._problems: dict[int, str] = {}
        self._http = Listener(self._serve)
        self._exposed = Listener(exposing(self._metrics.text))
        self._spans = Spans(flags.tracing)
        calls = Calls(self._pending, self._metrics, self._is_ready, self._channels, self._spans)
        self._grpc = GrpcListener(calls, flags.limits.size)
        self.ports = (0, 0, 0)
        """Those of HTTP, gRPC and metrics, once it is started."""

    async def start(self) -> None:
        """Listen. Raises ListenError."""
        flags = self._flags
        self.changed({}, {})
        self.ports = (
            await self._http.start(flags.host, flags.http_port),
            await self._grpc.start(flags.host, flags.grpc_port),
            await self._exposed.start(flags.host, flags.metrics_port),
        )
        LOG.info("listening: HTTP on port %d, gRPC on %d, metrics on %d", *self.ports)

    async def run(self, stop: asyncio.Event) -> None:
        """Serve until `stop` is set, and then until no request waits any more or the exit time is over."""
        self._follow_parts(1)
        helpers: list[asyncio.Future[Any]] = [self._followed, asyncio.create_task(self._publisher.run())]
        stopping: asyncio.Future[Any] = asyncio.create_task(stop.wait())
        try:
            await asyncio.wait((*helpers, stopping), return_when=asyncio.FIRST_COMPLETED)
            for helper in helpers:
                if helper.done():
                    helper.result()
            await self._end()
        finally:
            tasks: tuple[asyncio.Future[Any], ...] = (*helpers, stopping, *self._following.values())
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self._http.close()
            self._exposed.close()
            await self._grpc.stop(0)
            await self._channels.close()
            await self._leave()
            with suppress(TimeoutError):
                await asyncio.wait_for(asyncio.to_thread(self._spans.close), LAST_SPANS_S)

    def changed(self, queued: Mapping[str, int], refused: Mapping[str, int]) -> None:
        """Report to the operator how many requests wait now, and how many were refused a moment ago."""
        self._metrics.queued(queued)
        self._publisher.offer(QueuedRequests(self._flags.pod, Counter(queued) + Counter(refused)))

    def waited(self, name: str, seconds: float) -> None:
        """Observe the time that a request waited."""
        self._metrics.waited(name, seconds)

    def _is_ready(self) -> bool:
        return self._informed and not self._ending

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await Connection(
            self._pending, self._metrics, self._bodies, self._is_ready, self._spans, reader, writer
        ).serve()

    async def _follow(self, number: int) -> None:
        async for text in self._source(number).texts():
            self._take(number, text)

    def _take(self, number: int, text: str) -> None:
        """Use this text of a part from now on, if it can be read and all parts are there."""
        try:
            part = parse_part(text)
        except DocumentError as error:
            if str(error) != self._problems.get(number):
                LOG.warning("part %d: %s; what was said before stands", number, error)
            self._problems[number] = str(error)
            return
        self._problems.pop(number, None)
        activation = self._parts.take(number, part)
        if number == 0:
            self._follow_parts(self._parts.count)
        if activation is not None:
            self._go_by(activation)

    def _follow_parts(self, count: int) -> None:
        """Follow `count` parts; the first part is always followed."""
        for number in [part for part in self._following if part >= count]:
            self._following.pop(number).cancel()
        for number in range(count):
            if number not in self._following:
                self._following[number] = asyncio.create_task(self._follow(number))
                self._following[number].add_done_callback(self._follower_ended)

    def _follower_ended(self, follower: "asyncio.Task[None]") -> None:
        """End `run` with the result of the first follower that ended by itself."""
        if follower.cancelled() or self._followed.done():
            return
        error = follower.exception()
        if error is None:
            self._followed.set_result(None)
        else:
            self._followed.set_exception(error)

    def _go_by(self, activation: Activation) -> None:
        self._informed = True
        self._pending.update(activation)
        self._channels.keep({endpoint for member in activation.members for endpoint in member.endpoints})

    async def _leave(self) -> None:
        """Remove this Pod's report: each Pod has a key of its own, and those of gone Pods would pile up."""
        with suppress(PublishError):
            await self._sink.write("")

    async def _end(self) -> None:
        """Serve until no new requests come, then finish the requests that wait.

        Clients learn late that this Pod ends, so it goes on for a while.
        """
        self._ending = True
        loop = asyncio.get_running_loop()
        wait = IdleWait(self._flags.idle, self._pending.seen, loop.time())
        while not wait.reached(self._pending.seen, loop.time()):  # noqa: ASYNC110 - silence has no event
            await asyncio.sleep(IDLE_POLL_S)
        self._http.close()
        LOG.info("ending: no new requests, at most %g s for those that there are", self._flags.exit_s)
        try:
            async with asyncio.timeout(self._flags.exit_s):
                await asyncio.gather(self._http.ended(), self._grpc.stop(self._flags.exit_s))
        except TimeoutError:
            LOG.warning("requests that still wait are given up")
            await self._grpc.stop(0)
