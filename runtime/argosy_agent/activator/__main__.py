"""`python -m argosy_agent.activator`: a pool's activator."""

import asyncio
import logging
import signal
import sys

from argosy_agent.contract.activation import MEMBERS_KEY, held_key
from argosy_agent.exchange.ports import DesiredSource, StateSink
from argosy_agent.flags import LOG_FORMAT, Files
from argosy_agent.sources.kubernetes_api import ApiServer, ApiServerError

from .flags import Flags, parse
from .http.listener import ListenError
from .running import Activator


async def run(flags: Flags) -> None:
    """Until SIGTERM or SIGINT comes. Raises ApiServerError, ListenError."""
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    activator = Activator(flags, *_exchange(flags))
    await activator.start()
    await activator.run(stop)


def _exchange(flags: Flags) -> tuple[DesiredSource, StateSink]:
    if isinstance(flags.exchange, Files):
        from argosy_agent.sources.files import FileSink, FileSource

        return FileSource(flags.exchange.desired), FileSink(flags.exchange.state)
    from argosy_agent.sources.configmaps import ConfigMapSink, ConfigMapSource

    api = ApiServer.of_pod(flags.exchange.credentials)
    return (
        ConfigMapSource(api, flags.exchange.desired, MEMBERS_KEY),
        ConfigMapSink(api, flags.exchange.state, held_key(flags.pod)),
    )


def main() -> int:
    """The exit code: 0 after a signal; 1 with the reason where it cannot work."""
    flags = parse(sys.argv[1:])
    logging.basicConfig(level=flags.log.upper(), format=LOG_FORMAT)
    for chatty in ("httpx", "httpcore", "watchfiles"):
        logging.getLogger(chatty).setLevel(logging.WARNING)
    try:
        asyncio.run(run(flags))
    except (ApiServerError, ListenError) as error:
        logging.getLogger(__name__).error("%s", error)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
