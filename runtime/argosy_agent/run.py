"""`python -m argosy_agent.run`: the agent itself, under the parent that `python -m argosy_agent` is."""

import asyncio
import fcntl
import logging
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from argosy_agent.cache.storage import Storage
from argosy_agent.contract.documents import AgentState, state_text
from argosy_agent.contract.fitting import fitting_text
from argosy_agent.folder.repository import RepositoryFolder
from argosy_agent.publisher import DesiredSource, Publisher, StateSink, in_kind
from argosy_agent.sources.kubernetes_api import ApiServer, ApiServerError
from argosy_agent.sync.agent import Agent
from argosy_agent.sync.control import Control
from argosy_agent.sync.sidecar import Sidecar

from .flags import LOG_FORMAT, Files, Flags, parse


class FolderInUseError(Exception):
    """Another agent uses this folder."""


async def run(flags: Flags) -> None:
    """Run the agent of one server until SIGTERM or SIGINT. Raises OSError where the folder cannot be used."""
    source, sink = open_documents(flags)
    control = Control(flags.server, flags.control_token)
    storage = Storage(
        flags.cache,
        flags.cache_size,
        pvc_root=flags.pvc_root,
        folders=flags.allowed_folders,
        named_secrets=flags.secrets_root,
        identity=flags.storage_identity,
        lasting=True,
    )
    wake, stop = asyncio.Event(), asyncio.Event()
    agent = Agent(RepositoryFolder(flags.folder, ""), storage, control, time.monotonic, wake.set, flags.idle)
    text = state_text if isinstance(flags.documents, Files) else fitting_text
    publisher = Publisher(sink, time.monotonic, lambda state: text(_dated(state)), in_kind)
    sidecar = Sidecar(agent, storage, publisher, flags.folder, flags.pod, wake)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    try:
        await sidecar.run(source, stop)
    finally:
        storage.stop()
        await agent.stop()
        await control.close()


def _dated(state: AgentState) -> AgentState:
    return replace(state, written_at=int(time.time()))


def open_documents(flags: Flags) -> tuple[DesiredSource, StateSink]:
    """Return the source of the desired repository and the sink of the state that the flags name."""
    if isinstance(flags.documents, Files):
        from argosy_agent.sources.files import FileSink, FileSource

        return FileSource(flags.documents.desired), FileSink(flags.documents.state)
    from argosy_agent.sources.configmaps import ConfigMapSink, ConfigMapSource

    api = ApiServer.of_pod(flags.documents.credentials)
    return ConfigMapSource(api, flags.documents.desired), ConfigMapSink(api, flags.documents.state)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Lock a folder for this process; the lock ends with the process. Raises FolderInUseError."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "agent.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise FolderInUseError(f"another agent works on {folder}: end it, or pass another --folder") from None
        yield


def main() -> int:
    """Run the agent and return the exit code: 0 after a signal; 1, with the reason logged, where it cannot work."""
    flags = parse(sys.argv[1:])
    logging.basicConfig(level=flags.log.upper(), format=LOG_FORMAT)
    for chatty in ("httpx", "httpcore", "watchfiles"):
        logging.getLogger(chatty).setLevel(logging.WARNING)
    log = logging.getLogger(__name__)
    try:
        with locked(flags.folder):
            flags.cache.mkdir(parents=True, exist_ok=True)
            asyncio.run(run(flags))
    except (FolderInUseError, ApiServerError) as error:
        log.error("%s", error)
        return 1
    except Exception:
        log.exception("the agent ends, process %d", os.getpid())
        return 1
    return 0


if __name__ == "__main__":
    code = main()
    logging.shutdown()
    os._exit(code)  # the interpreter would wait for a thread that hangs in a storage
