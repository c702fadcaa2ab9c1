"""`python -m argosy_agent.activator`: a pool's activator."""

import asyncio
import logging
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from argosy_agent.contract.activation import MEMBERS_KEY, part_name, queued_key
from argosy_agent.contract.documents import ConfigMapName
from argosy_agent.flags import LOG_FORMAT, Files
from argosy_agent.publisher import DesiredSource, StateSink
from argosy_agent.sources.kubernetes_api import ApiServer, ApiServerError

from .flags import Flags, parse
from .http.listener import ListenError
from .running import Activator


async def run(flags: Flags) -> None:
    """Run the activator until SIGTERM or SIGINT. Raises ApiServerError, ListenError."""
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    activator = Activator(flags, *_open_documents(flags))
    await activator.start()
    await activator.run(stop)


def _open_documents(flags: Flags) -> tuple[Callable[[int], DesiredSource], StateSink]:
    """Return the source of each part of the members, by its number, and the sink for the requests that wait."""
    if isinstance(flags.documents, Files):
        from argosy_agent.sources.files import FileSink, FileSource

        file: Path = flags.documents.desired
        return lambda part: FileSource(file.with_name(part_name(file.name, part))), FileSink(flags.documents.state)
    from argosy_agent.sources.configmaps import ConfigMapSink, ConfigMapSource

    api, first = ApiServer.of_pod(flags.documents.credentials), flags.documents.desired
    return (
        lambda part: ConfigMapSource(api, ConfigMapName(first.namespace, part_name(first.name, part)), MEMBERS_KEY),
        ConfigMapSink(api, flags.documents.state, queued_key(flags.pod)),
    )


def main() -> int:
    """Run the activator and return the exit code: 0 after a signal; 1, with the reason logged, where it cannot work."""
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
