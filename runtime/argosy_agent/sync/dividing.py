"""Weights of versions, which a server takes over at once: without a load, and while it loads other versions of a model.

A load of the same model follows as for any other change, and finds nothing left to do but to note it.
"""

import asyncio
import logging

from argosy_agent.contract import RenderedModel
from argosy_agent.folder.repository import RepositoryFolder
from argosy_agent.folder.traffic import traffic_of

from .control import ControlError, Controls, UnreachableError
from .ledger import Ledger

LOG = logging.getLogger(__name__)
UNKNOWN = ""
"""The weights at a server where it is not known which it took over last: no weights, so that any are sent."""


class Dividing:
    """Passes the weights of served models on to one server. It lives on one event loop."""

    def __init__(self, folder: RepositoryFolder, control: Controls, ledger: Ledger) -> None:
        self._folder, self._control, self._ledger = folder, control, ledger
        # A former agent may have sent weights of which no load is on record.
        self._sent = dict.fromkeys(ledger.applied, UNKNOWN)
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def busy(self) -> bool:
        """True while the server has not answered."""
        return bool(self._tasks)

    def aim(self, models: tuple[RenderedModel, ...]) -> None:
        """Have whatever is written from now on divide requests as these models declare."""
        self._folder.traffic = {model.name: traffic for model in models if (traffic := traffic_of(model.config_text))}
        self._sent = {name: traffic for name, traffic in self._sent.items() if name in self._folder.traffic}

    def converge(self) -> None:
        """Pass on what the server does not know yet."""
        for name, traffic in self._folder.traffic.items():
            applied = self._ledger.applied.get(name)
            if applied is not None and traffic != self._sent.get(name, traffic_of(applied.model.config_text)):
                self._sent[name] = traffic
                task = asyncio.create_task(self._divide(name), name=f"traffic of {name}")
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)

    async def stop(self) -> None:
        """Cancel what the server has not answered."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _divide(self, name: str) -> None:
        try:
            await asyncio.to_thread(self._folder.divide, name)
            await self._control.divide(name)
        except UnreachableError:
            self._sent[name] = UNKNOWN  # it may have taken them over all the same; the next round tries again
        except (ControlError, OSError) as error:
            LOG.warning("the requests of %s are divided once it is loaded: %s", name, error)
