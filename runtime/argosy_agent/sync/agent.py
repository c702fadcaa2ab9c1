"""Reconciles one server's models with the desired repository, over its public control protocol.

It receives the full desired repository repeatedly (`aim`), and starts missing changes (`converge`): fetch the files,
put them next to the served ones, load, and remove the old ones once the server has loaded the new ones. Requests are
served throughout. A failed change is reverted, reported with its reason, and retried later; it does not delay others.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine

from argosy_agent.cache.storage import Storage
from argosy_agent.contract import FailureKind, RenderedModel, RenderedRepository, VersionSource, in_load_order
from argosy_agent.folder.repository import RepositoryFolder
from argosy_agent.folder.target import Target
from argosy_agent.transfer.errors import (
    DigestMismatchError,
    MissingError,
    StorageError,
    StorageStoppedError,
    TooLargeError,
    UnusableError,
)
from argosy_common.idle import AT_ONCE, IdlePeriod

from .control import ControlError, Controls, RefusedError, SlowError, UnreachableError
from .dividing import Dividing
from .ledger import RETRY_FIRST_S, Ledger
from .loading import Loading
from .observation import Observation
from .storage.fetching import Fetching
from .storage.keys import Keys
from .storage.threads import storage_of, unanswered
from .unloading import UntilIdle

LOG = logging.getLogger(__name__)
SLOW_ANSWERS = 3
"""After this many indexes in a row that did not come in time, a server counts as one that does not answer."""
STOP_S = 5.0
"""How long threads are waited for at the end: one that hangs in a storage never ends."""


class Agent:
    """One server's models. Not thread-safe: it lives on one event loop. `ledger` is for others to read.

    `ended` is called whenever something that was under way has ended. `idle_period`: how long a model must have no new
    request before it is unloaded.
    """

    def __init__(
        self,
        folder: RepositoryFolder,
        storage: Storage,
        control: Controls,
        clock: Callable[[], float],
        ended: Callable[[], None] = lambda: None,
        idle_period: IdlePeriod = AT_ONCE,
    ) -> None:
        self._folder, self._control, self._clock = folder, control, clock
        self._report_ended = ended
        self._slow = 0
        self.ledger = Ledger(folder.applied())
        self.ledger.learned(storage.digests(self.ledger.cache_keys()))
        self._observation = Observation(control, self.ledger, clock)
        self._dividing = Dividing(folder, control, self.ledger)
        self._tasks: dict[str, asyncio.Task[bool]] = {}
        self._until_idle = UntilIdle(control, idle_period, clock, time.time)
        self._keys, self._fetching = Keys(storage, clock, ended), Fetching(folder, storage, clock)
        self._loading = Loading(folder, self._fetching, control, self._observation, self.ledger, self._until_idle)

    @property
    def busy(self) -> bool:
        """Whether anything is being fetched, loaded or dropped."""
        return bool(self._tasks) or self._dividing.busy

    @property
    def progressing(self) -> bool:
        """Whether anything is under way beyond another try of what failed before."""
        return any(not self.ledger.has_failed(name) for name in self._tasks)

    async def observe(self) -> bool:
        """Read the loaded models, and return whether the server answered. Without an answer nothing counts as loaded.

        A slow server keeps its last state, since reporting its models as lost would also remove its requests.
        """
        try:
            await self._observation.look()
        except SlowError:
            self._slow += 1
            if self._slow >= SLOW_ANSWERS:
                self.forget()
            return self._slow < SLOW_ANSWERS
        except ControlError:
            self.forget()
            return False
        self._slow = 0
        return True

    def forget(self) -> None:
        """Count nothing as loaded, as the server does not answer."""
        self.ledger.lost()

    async def aim(self, desired: RenderedRepository) -> None:
        """Record the desired repository in the ledger, and pass weights of versions on; no other change is started.

        It does not wait for storage that does not answer: the last known state of its files stays.
        """
        self._dividing.aim(desired.models)
        self._dividing.converge()
        await self._keys.look(desired)
        targets = {model.name: target for model in desired.models if (target := self._target(model)) is not None}
        self.ledger.desire(desired, targets)
        self.ledger.silent = self._unanswered(desired) | self._fetching.silent()

    def converge(self) -> None:
        """Start the next steps towards what is desired. Call after `observe` and `aim`."""
        for model in in_load_order(self.ledger.desired):
            target = self.ledger.due(model.name, self._clock())
            if target is not None:
                self._start(model.name, self._bring(target))
        for name in self.ledger.unwanted(self._folder.names()):
            self._start(name, self._drop(name))

    async def stop(self) -> None:
        """Cancel running changes, and wait until they are reverted."""
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), self._dividing.stop(), return_exceptions=True)
        await asyncio.gather(self._keys.ended(STOP_S), self._fetching.ended(STOP_S))

    def _target(self, model: RenderedModel) -> Target | None:
        """Return a model with the keys of its files; None where they cannot be had, or are not known yet."""
        keys, at = dict[int, str](), 0
        try:
            for version, source in model.versions.items():
                at = version
                key = self._key(model, version, source) if source.uri else ""
                if key is None:
                    return None
                keys[version] = key
        except StorageError as error:
            self.ledger.without_files(model.name, at, str(error), _kind(error), self._clock())
            return None
        return Target(model, keys)

    def _key(self, model: RenderedModel, version: int, source: VersionSource) -> str | None:
        """Return the key of a version's files.

        A version that is loaded already needs no storage: where that has nothing any more, the key of the fetched files
        stands. Raises StorageError where there is none.
        """
        applied = self._applied_key(model.name, version, source)
        try:
            return self._keys.key(source, version) or applied
        except StorageError:
            if applied is None or len(model.versions) == 1:
                raise
            return applied

    def _applied_key(self, name: str, version: int, source: VersionSource) -> str | None:
        applied = self.ledger.applied.get(name)
        if applied is None or version not in applied.model.versions:
            return None
        same = applied.model.versions[version].files == source.files
        return applied.keys.get(version) if same else None

    def _unanswered(self, desired: RenderedRepository) -> dict[str, str]:
        """Return messages for the models whose keys are not known because their storage does not answer."""
        silent, messages = self._keys.silent(), {}
        for model in desired.models if silent else ():
            waits = {s for source in model.versions.values() if source.uri and (s := storage_of(source.uri)) in silent}
            if waits and model.name not in self.ledger.targets:
                longest = max(waits, key=lambda storage: silent[storage])
                messages[model.name] = unanswered(longest, silent[longest])
        return messages

    def _start(self, name: str, work: Coroutine[None, None, bool]) -> None:
        """Start work on a model. `work` returns whether the ledger has the result that it had on the server."""
        self.ledger.begins(name)
        task = asyncio.create_task(work, name=name)
        self._tasks[name] = task
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[bool]) -> None:
        name = task.get_name()
        fault = None if task.cancelled() else task.exception()
        if fault is not None:
            LOG.error("model %s", name, exc_info=fault)
        self._tasks.pop(name, None)
        self.ledger.ended(name, observed=not task.cancelled() and fault is None and task.result())
        self._report_ended()

    async def _bring(self, target: Target) -> bool:
        try:
            await self._loading.serve(target)
            self.ledger.brought(target)
            return True
        except StorageStoppedError:
            pass  # something else is wanted by now
        except (StorageError, ControlError, OSError) as error:
            alone = isinstance(error, UnreachableError) and not isinstance(error, SlowError)
            costly = isinstance(error, UnusableError | TooLargeError)
            self.ledger.failed(target, str(error), _kind(error), self._clock(), alone=alone, costly=costly)
        except Exception as error:  # a bug: it is reported like any other error, and tried again after a pause
            LOG.exception("model %s", target.model.name)
            self.ledger.failed(target, f"{type(error).__name__}: {error}", FailureKind.LOAD, self._clock())
        return False

    async def _drop(self, name: str) -> bool:
        self.ledger.doing[name] = "unloading"
        target = self.ledger.applied.get(name)
        versions = set(target.model.versions) if target else set()
        await self._until_idle.wait(name, frozenset(versions), lambda: not self.ledger.wants(name))
        if self.ledger.wants(name):
            return False
        gone = False
        try:
            await self._control.unload(name)
            gone = await self._observation.gone(name, versions)
        except RefusedError:
            pass  # it never was loaded
        except UnreachableError:
            return False  # it stays in the folder, and the next round tries again
        await self._remove(name)
        return gone

    async def _remove(self, name: str) -> None:
        try:
            await asyncio.to_thread(self._folder.remove, name)
        except OSError as error:
            LOG.warning("the folder of %s cannot be removed, and is tried again: %s", name, error)
            await asyncio.sleep(RETRY_FIRST_S)
        else:
            self.ledger.dropped(name)


def _kind(error: Exception) -> FailureKind:
    if isinstance(error, DigestMismatchError):
        return FailureKind.DIGEST
    if isinstance(error, UnusableError | MissingError):
        return FailureKind.FILES
    if isinstance(error, RefusedError) and error.faulty:
        return FailureKind.DEVICE
    if isinstance(error, UnreachableError):
        return FailureKind.SERVER
    if isinstance(error, ControlError):
        return FailureKind.LOAD
    return FailureKind.DOWNLOAD
