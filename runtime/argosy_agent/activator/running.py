"""An activator from its start to its end: what it follows, what it tells, where it listens."""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from argosy_agent.contract.activation import Activation, HeldRequests, held_text, parse_part
from argosy_agent.contract.fields import DocumentError
from argosy_agent.exchange.ports import DesiredSource, PublishError, StateSink
from argosy_agent.exchange.publisher import Publisher
from argosy_common.idle import Quiet

from .flags import Flags
from .grpc.calls import Calls
from .grpc.channels import Channels
from .grpc.listener import GrpcListener
from .holding import Holder
from .http.connection import Connection
from .http.listener import Listener, exposing
from .metrics import Metrics
from .parts import Parts

LOG = logging.getLogger(__name__)
QUIET_POLL_S = 0.2


class Activator:
    """One process of it. `source` makes what follows a part, by its number, of where models are ready; `sink` is told
    who waits.
    """

    def __init__(self, flags: Flags, source: Callable[[int], DesiredSource], sink: StateSink) -> None:
        self._flags, self._source, self._sink = flags, source, sink
        self._parts, self._following = Parts(), dict[int, asyncio.Task[None]]()
        self._followed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._metrics, self._channels = Metrics(), Channels()
        loop = asyncio.get_running_loop()
        self._publisher = Publisher(sink, loop.time, held_text, lambda told: sorted(told.held))
        self._holder = Holder(flags.limits, self)
        self._known = self._ending = False
        self._problems: dict[int, str] = {}
        self._http = Listener(self._serve)
        self._exposed = Listener(exposing(self._metrics.text))
        calls = Calls(self._holder, self._metrics, self._is_ready, self._channels)
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
        """Serve until `stop` is set and nobody waits any more, or has waited as long as may be after it."""
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

    def changed(self, held: Mapping[str, int], refused: Mapping[str, int]) -> None:
        """So many wait now, and so many found no room a moment ago: the operator is told of both."""
        self._metrics.held(held)
        self._publisher.offer(HeldRequests(self._flags.pod, Counter(held) + Counter(refused)))

    def waited(self, name: str, seconds: float) -> None:
        """One waits no more."""
        self._metrics.waited(name, seconds)

    def _is_ready(self) -> bool:
        return self._known and not self._ending

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await Connection(self._holder, self._metrics, self._is_ready, reader, writer).serve()

    async def _follow(self, number: int) -> None:
        async for text in self._source(number).texts():
            self._take(number, text)

    def _take(self, number: int, text: str) -> None:
        """Go by this text of a part from now on, if it can be read and all parts are there."""
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
        """Follow so many parts, the first of which is followed always."""
        for number in [each for each in self._following if each >= count]:
            self._following.pop(number).cancel()
        for number in range(count):
            if number not in self._following:
                self._following[number] = asyncio.create_task(self._follow(number))
                self._following[number].add_done_callback(self._follower_ended)

    def _follower_ended(self, follower: "asyncio.Task[None]") -> None:
        """End `run` as the first follower ended that was not to end."""
        if follower.cancelled() or self._followed.done():
            return
        error = follower.exception()
        if error is None:
            self._followed.set_result(None)
        else:
            self._followed.set_exception(error)

    def _go_by(self, activation: Activation) -> None:
        self._known = True
        self._holder.update(activation)
        self._channels.keep({endpoint for member in activation.members for endpoint in member.endpoints})

    async def _leave(self) -> None:
        """This Pod says nothing any more: what Pods say would pile up else, as each has a key of its own."""
        with suppress(PublishError):
            await self._sink.write("")

    async def _end(self) -> None:
        """Whoever sends requests learns late that this Pod ends: it goes on until they stop coming, then with those
        that it has."""
        self._ending = True
        loop = asyncio.get_running_loop()
        quiet = Quiet(self._flags.quiet, self._holder.seen, loop.time())
        while not quiet.reached(self._holder.seen, loop.time()):  # noqa: ASYNC110 - silence has no event
            await asyncio.sleep(QUIET_POLL_S)
        self._http.close()
        LOG.info("ending: no new requests, at most %g s for those that there are", self._flags.exit_s)
        try:
            async with asyncio.timeout(self._flags.exit_s):
                await asyncio.gather(self._http.ended(), self._grpc.stop(self._flags.exit_s))
        except TimeoutError:
            LOG.warning("requests that still wait are given up")
            await self._grpc.stop(0)
