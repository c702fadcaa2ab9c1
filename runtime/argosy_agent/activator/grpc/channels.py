"""A channel for each server, which its calls share."""

import asyncio
from collections.abc import Collection
from typing import Any

import grpc

from argosy_agent.activator.pending import UnreachableError
from argosy_agent.contract.activation import Endpoint

CONNECT_S = 2.0
_GRACE_S = 3600.0
"""How long calls may go on, on a channel that is used for no new ones."""
_OPTIONS = (
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
    # What is tried again is decided here: only what never left.
    ("grpc.enable_retries", 0),
    ("grpc.use_local_subchannel_pool", 1),
)


class Channels:
    """Channels by server, opened when they are first needed."""

    def __init__(self) -> None:
        self._channels: dict[Endpoint, Any] = {}
        self._closing: set[asyncio.Task[None]] = set()

    async def open(self, endpoint: Endpoint) -> grpc.aio.Channel:
        """Return one that is connected. Raises UnreachableError."""
        if endpoint not in self._channels:
            self._channels[endpoint] = grpc.aio.insecure_channel(_address(endpoint), options=_OPTIONS)
        channel = self._channels[endpoint]
        try:
            async with asyncio.timeout(CONNECT_S):
                await channel.channel_ready()
        except (TimeoutError, grpc.aio.UsageError) as error:  # or it was closed for another call that waited for it
            self._drop(endpoint, channel)
            raise UnreachableError(f"{_address(endpoint)} does not take a connection") from error
        return channel

    def keep(self, endpoints: Collection[Endpoint]) -> None:
        """Make no new calls to other endpoints than these."""
        for endpoint in [channel for channel in self._channels if channel not in endpoints]:
            self._drop(endpoint, self._channels[endpoint])

    async def close(self) -> None:
        """Close all channels at once."""
        for task in self._closing:
            task.cancel()
        await asyncio.gather(*self._closing, return_exceptions=True)
        await asyncio.gather(*(channel.close() for channel in self._channels.values()))
        self._channels.clear()

    def _drop(self, endpoint: Endpoint, channel: Any) -> None:
        if endpoint in self._channels and self._channels[endpoint] is channel:
            del self._channels[endpoint]
            task = asyncio.ensure_future(channel.close(_GRACE_S))
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)


def _address(endpoint: Endpoint) -> str:
    host = f"[{endpoint.host}]" if ":" in endpoint.host else endpoint.host
    return f"ipv6:{host}:{endpoint.grpc}" if ":" in endpoint.host else f"ipv4:{host}:{endpoint.grpc}"
