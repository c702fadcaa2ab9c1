"""Loading one model: files, folder, load; reverted where the server refuses it.

What it served before goes on being served until the server has loaded the new version, and stays in the folder until
the server has answered the last request to it.
"""

import asyncio
import logging
import re
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from functools import partial
from pathlib import Path

from argosy_agent.contract import WAY_OUT, LoadState
from argosy_agent.folder.repository import RepositoryFolder, StagedChange
from argosy_agent.folder.target import Target
from argosy_agent.transfer.errors import StorageError, StorageStoppedError, shown
from argosy_common import device_errors

from .control import ControlError, Controls, RefusedError
from .ledger import LOADING, QUEUED, Ledger
from .observation import Observation
from .storage.fetching import Fetching
from .unloading import UntilIdle

LOG = logging.getLogger(__name__)
LOADS_AT_ONCE = 4


class Loading:
    """Loads targets, several at once, and writes into the ledger how far each is. It lives on one event loop."""

    def __init__(
        self,
        folder: RepositoryFolder,
        fetching: Fetching,
        control: Controls,
        observation: Observation,
        ledger: Ledger,
        until_idle: UntilIdle,
    ) -> None:
        self._folder, self._fetching, self._control = folder, fetching, control
        self._observation, self._until_idle, self._ledger = observation, until_idle, ledger
        self._slots = asyncio.Semaphore(LOADS_AT_ONCE)

    async def serve(self, target: Target) -> None:
        """Load a target; where that fails and nothing is served yet, load as many of its versions as possible before
        raising.

        Servers load all of a model's versions or none. Raises StorageError, ControlError, OSError.
        """
        desired, name = self._ledger.targets.get(target.model.name), target.model.name
        try:
            await self._load(target, desired)
        except StorageStoppedError:
            raise
        except (RefusedError, StorageError):
            for fewer in target.with_fewer_versions():
                if name not in self._ledger.applied:
                    with suppress(RefusedError, StorageError):
                        await self._load(fewer, desired)
            raise

    async def _load(self, target: Target, desired: Target | None) -> None:
        """Load a target. `desired` is the target in the ledger for as long as this is of any use."""
        name = target.model.name

        def progress(words: str) -> None:
            if self._ledger.targets.get(name) != desired:
                raise StorageStoppedError(f"{name} is wanted otherwise by now")
            self._ledger.doing[name] = words

        before = self._ledger.applied.get(name)
        if before is not None and before.model.versions.keys() > target.model.versions.keys():
            leaving = frozenset(before.model.versions.keys() - target.model.versions.keys())
            staying = frozenset(target.model.versions)
            await self._until_idle.wait(name, leaving, lambda: self._ledger.targets.get(name) == desired, staying)
            progress(QUEUED)
        files = await self._fetching.files(target, before, progress)
        self._ledger.learned(await self._fetching.digests(target))
        change = await self._fetching.in_cache(name, partial(self._folder.stage, target, before, files))
        try:
            async with self._turn(target, before):
                self._ledger.doing[name] = LOADING
                await self._ask_to_load(target)
        except BaseException as error:
            change.revert()
            if before not in (None, target) and isinstance(error, RefusedError):
                await self._restore(before)
            raise
        await self._accept(change)

    def _turn(self, target: Target, before: Target | None) -> AbstractAsyncContextManager[object]:
        """Return the slot that is taken while the server loads.

        A change in place does not wait behind models that load.
        """
        if before is not None and target.model.changes_live(before.model):
            return nullcontext()
        return self._slots

    async def _accept(self, change: StagedChange) -> None:
        """Record a loaded target.

        A disk that fails from now on reverts nothing; the next change clears up first.
        """
        target, before = change.target, change.before
        self._ledger.applied[target.model.name] = target
        try:
            await asyncio.to_thread(change.accept)
            if before is not None and (leaving := set(before.model.versions) - set(target.model.versions)):
                await self._observation.gone(target.model.name, leaving)
            await asyncio.to_thread(change.tidy)
        except OSError as error:
            LOG.warning("model %s is loaded, and its folder is not tidied up: %s", target.model.name, error)

    async def _ask_to_load(self, target: Target) -> None:
        """Load a target, and check that every version is ready.

        Raises RefusedError with the index's reason of the first that is not, which is shorter than the answer to the
        load.
        """
        name, refused = target.model.name, ""
        try:
            await self._control.load(name)
            if await self._observation.are_ready(name, target.model.versions):
                self._observation.soon()
                return
        except RefusedError as error:
            refused = str(error)
        await self._observation.index()
        unready = [v for v in sorted(target.model.versions) if self._ledger.state(name, v) is not LoadState.READY]
        if refused or unready:
            message = next((reason for v in unready if (reason := self._ledger.reason(name, v))), refused)
            faulty = device_errors.matches(message) or device_errors.matches(refused)
            raise RefusedError(self._explained(target, message or f"version {unready[0]} is not ready"), faulty=faulty)

    def _explained(self, target: Target, words: str) -> str:
        uris = {version: source.uri for version, source in target.model.versions.items()}
        return load_failure(words, self._folder.root / target.model.name, uris, self._folder.log)

    async def _restore(self, before: Target) -> None:
        """Load the former version again after a refused load, if the server has unloaded it.

        Most servers keep serving the former version.
        """
        name = before.model.name
        with suppress(ControlError):
            await self._observation.index()
            if not self._ledger.is_ready(before.model):
                await self._control.load(name)


NAMES_SHOWN = 8
ANSWER = re.compile(r"^load failed for model '[^']*': version \d+ is at UNAVAILABLE state: ")
"""What Triton's protocol puts before the reason."""


def load_failure(words: str, folder: Path, uris: Mapping[int, str], log: str) -> str:
    """Return a server's error for the model in `folder` as one line that names its storageUri where a file is missing.

    `uris` are its versions' storageUris; `log` is where the server logs more, empty where that is not known.
    """
    words = re.sub(ANSWER, "", words)
    missing = [path for path in re.findall(rf"{re.escape(str(folder))}/\d+/[^\s'\":(]+", words) if _is_not(path)]
    for version in uris:
        words = words.replace(f"{folder}/{version}/", "")
    line = " ".join(words.split()).rstrip(";. ")
    for path in dict.fromkeys(missing):
        version = int(Path(path).relative_to(folder).parts[0])
        line += f"; {shown(uris.get(version, str(folder)))} holds {_listing(folder / str(version))}"
    return f"{line}; {WAY_OUT} (the server's log{f': {log}' if log else ' may say more'})"


def _is_not(path: str) -> bool:
    return not Path(path).exists()


def _listing(folder: Path) -> str:
    names = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
    more = f" and {len(names) - NAMES_SHOWN} more" if len(names) > NAMES_SHOWN else ""
    return (", ".join(names[:NAMES_SHOWN]) or "nothing") + more
