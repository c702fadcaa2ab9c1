"""The loop of an agent: read the desired and the loaded models, take one step, publish the state."""

import asyncio
import logging
import os
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from argosy_agent.cache.storage import Storage
from argosy_agent.contract import LoadedModel, RenderedRepository
from argosy_agent.contract.documents import NOTHING, AgentState, fingerprint, parse_repository
from argosy_agent.contract.fields import DocumentError, Fields
from argosy_agent.contract.fitting import LONGEST_REASON, shortened
from argosy_agent.jsonfiles import read_json, write_json
from argosy_agent.publisher import DesiredSource, Publisher
from argosy_agent.threads import in_thread

from .agent import Agent
from .storage.keys import PATIENCE_S

LOG = logging.getLogger(__name__)
POLL_S = 2.0
"""How often the server is looked at when nothing happens: it may restart, or be controlled by others."""
FILE = "agent.json"
"""The file of its folder with the record that it needs when it starts again in the same Pod."""


@dataclass(frozen=True, slots=True)
class Record:
    """The record of one Pod (a UID or empty): whether it has settled, and the last valid desired text, if any."""

    pod: str
    settled: bool = False
    desired: str = ""


def read_record(folder: Path, pod: str) -> Record:
    """Return the record of this Pod; an empty one if it is of another Pod, or unreadable."""
    value = read_json(folder / FILE)
    if value is None or value.get("pod") != pod:
        return Record(pod)
    fields = Fields(value, FILE)
    try:
        return Record(pod, fields.flag("settled"), fields.text("desired"))
    except DocumentError:
        return Record(pod)


def write_record(folder: Path, record: Record) -> None:
    """Replace it. A disk that is full keeps no agent from its work: it is logged."""
    try:
        write_json(folder / FILE, asdict(record))
    except OSError as error:
        LOG.warning("%s cannot be written, a restarted agent would not know of it: %s", folder / FILE, error)


class Sidecar:
    """Runs one agent. `wake` is set by whatever ends a wait for the next round; `folder` keeps its record."""

    def __init__(
        self,
        agent: Agent,
        storage: Storage,
        publisher: Publisher[AgentState],
        folder: Path,
        pod: str,
        wake: asyncio.Event,
    ) -> None:
        self._agent, self._storage, self._publisher = agent, storage, publisher
        self._folder, self._wake = folder, wake
        self._record = read_record(folder, pod)
        self._desired: RenderedRepository | None = None
        self._fingerprint = ""
        self._problem = ""
        self._tried: set[str] = set()
        self._keeping: asyncio.Future[None] | None = None
        self._retained = False
        if self._record.desired:
            self._take(self._record.desired)

    async def run(self, source: DesiredSource, stop: asyncio.Event) -> None:
        """Run rounds until `stop` is set, or the parent process is gone."""
        parent = os.getppid()
        async with asyncio.TaskGroup() as tasks:
            helpers = [tasks.create_task(self._follow(source)), tasks.create_task(self._publisher.run())]
            helpers.append(tasks.create_task(self._wake_on(stop)))
            while not stop.is_set() and os.getppid() == parent:
                self._wake.clear()
                await self.round()
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._wake.wait(), POLL_S)
            for helper in helpers:
                helper.cancel()

    async def round(self) -> None:
        """Look, do what is due, and offer the state."""
        live = await self._agent.observe()
        if self._desired is not None:
            await self._agent.aim(self._desired)
            # Before anything is fetched: room is never made by dropping what is served.
            if await self._keep(self._agent.ledger.cache_keys()) and live:
                self._agent.converge()
                self._settle(self._desired)
        self._publisher.offer(self._state(live))

    async def _keep(self, keys: set[str]) -> bool:
        """Return whether the storage was given what is served, now or earlier: its disk may hang."""
        if self._keeping is None:
            self._keeping = in_thread(lambda: self._storage.keep(keys))
        await asyncio.wait({self._keeping}, timeout=PATIENCE_S)
        if self._keeping.done():
            self._keeping.result()
            self._keeping, self._retained = None, True
        else:
            self._keeping.add_done_callback(lambda _: self._wake.set())
        return self._retained

    async def _follow(self, source: DesiredSource) -> None:
        async for text in source.texts():
            self._take(text)
            self._wake.set()

    async def _wake_on(self, stop: asyncio.Event) -> None:
        await stop.wait()
        self._wake.set()

    def _take(self, text: str) -> None:
        """Go by this text from now on, if it can be read. The same one comes again and again."""
        try:
            if self._desired is None or text != self._record.desired:
                self._desired, self._fingerprint = parse_repository(text), fingerprint(text)
            self._problem = ""
        except DocumentError as error:
            if str(error) != self._problem:
                LOG.warning("%s; what was desired before stands", error)
            self._problem = str(error)
            return
        self._remember(replace(self._record, desired=text))

    def _settle(self, desired: RenderedRepository) -> None:
        if self._record.settled:
            return
        names = {model.name for model in desired.models}
        self._tried |= {name for name in names if self._agent.ledger.has_been_tried(name)}
        if names <= self._tried:
            LOG.info("settled: every model was ready or had failed once")
            self._remember(replace(self._record, settled=True))

    def _remember(self, record: Record) -> None:
        if record != self._record:
            self._record = record
            write_record(self._folder, record)

    def _state(self, live: bool) -> AgentState:
        ledger = self._agent.ledger
        server = (self._desired or NOTHING).server
        applied = tuple(ledger.applied[name].model for name in sorted(ledger.applied))
        return AgentState(
            pod=self._record.pod,
            live=live,
            settled=self._record.settled,
            models=tuple(map(_shortened, ledger.loaded())),
            applied=RenderedRepository(server, applied),
            desired=self._fingerprint,
            problem=self._problem,
        )


def _shortened(loaded: LoadedModel) -> LoadedModel:
    reason = shortened(loaded.reason, LONGEST_REASON)
    return loaded if reason is loaded.reason else replace(loaded, reason=reason)
