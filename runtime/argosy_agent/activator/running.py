"""An activator from its start to its end: what it follows, what it tells, where it listens."""

import asyncio
import logging
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress

from argosy_agent.contract.activation import HeldRequests, held_text, parse_activation
from argosy_agent.contract.fields import DocumentError
from argosy_agent.exchange.ports import DesiredSource, PublishError, StateSink
from argosy_agent.exchange.publisher import Publisher
from argosy_runtime.shared.quiet import Quiet

from .flags import Flags
from .grpc.calls import Calls
from .grpc.channels import Channels
from .grpc.listener import GrpcListener
from .holding import Holder
from .http.connection import Connection
from .http.listener import Listener, exposing
from .metrics import Metrics

LOG = logging.getLogger(__name__)
QUIET_POLL_S = 0.2


class Activator:
    """One process of it. `source` says where models are ready, `sink` is told who waits."""

    def __init__(self, flags: Flags, source: DesiredSource, sink: StateSink) -> None:
        self._flags, self._source, self._sink = flags, source, sink
        self._metrics, self._channels = Metrics(), Channels()
        loop = asyncio.get_running_loop()
        self._publisher = Publisher(sink, loop.time, held_text, lambda told: sorted(told.held))
        self._holder = Holder(flags.limits, self)
        self._known = self._ending = False
        self._problem = ""
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
        helpers = [asyncio.create_task(self._follow()), asyncio.create_task(self._publisher.run())]
        stopping = asyncio.create_task(stop.wait())
        try:
            await asyncio.wait((*helpers, stopping), return_when=asyncio.FIRST_COMPLETED)
            for helper in helpers:
                if helper.done():
                    helper.result()
            await self._end()
        finally:
            for task in (*helpers, stopping):
                task.cancel()
            await asyncio.gather(*helpers, stopping, return_exceptions=True)
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

    async def _follow(self) -> None:
        async for text in self._source.texts():
            self._take(text)

    def _take(self, text: str) -> None:
        """Go by this text from now on, if it can be read."""
        try:
            activation = parse_activation(text)
        except DocumentError as error:
            if str(error) != self._problem:
                LOG.warning("%s; what was said before stands", error)
            self._problem = str(error)
            return
        self._problem, self._known = "", True
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
        self._exposed.close()
