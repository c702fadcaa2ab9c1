"""The feed of resources: kopf tells what they hold, whatever ends it; `deletions` tells what kopf forgets."""

import asyncio
import logging
import random
from collections.abc import Callable, Collection, Mapping

import kopf

from argosy.cluster.client.connection import Connection
from argosy.controller.resources.feed import Listener

from .deletions import Deletions
from .resources import registry, settings

RETRY_FIRST_S, RETRY_MOST_S = 1.0, 30.0
WELL_S = 60.0
"""After how long without an error the next one counts as the first."""

log = logging.getLogger(__name__)


class KopfFeed:
    """Tells a listener of every resource, in these namespaces or, without any, in all.

    `spawned` is called whenever kopf has begun: it has taken the signals of the process by then.
    """

    def __init__(
        self, listener: Listener, connection: Connection, namespaces: Collection[str], spawned: Callable[[], None]
    ) -> None:
        self._listener, self._connection, self._namespaces = listener, connection, tuple(namespaces)
        self._spawned = spawned
        self._deletions = Deletions(connection, namespaces, listener)

    @property
    def troubles(self) -> Mapping[str, str]:
        """What cannot be read."""
        return self._deletions.troubles

    async def run(self) -> None:
        """Until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._deletions.run())
            tasks.create_task(self._run_kopf())

    async def synced(self) -> None:
        """Until the listener knows every resource that there is. Raises UntoldError, ForbiddenError."""
        await self._deletions.all_told()

    async def _run_kopf(self) -> None:
        """An error that ends kopf is logged, and kopf runs again."""
        loop, pause = asyncio.get_running_loop(), RETRY_FIRST_S
        while True:
            began = loop.time()
            error = await self._once()
            pause = RETRY_FIRST_S if loop.time() - began > WELL_S else pause
            log.warning("kopf ended: %s; it runs again in %.1f s", error, pause)
            await asyncio.sleep(pause * random.uniform(0.8, 1.2))
            pause = min(pause * 2, RETRY_MOST_S)

    async def _once(self) -> BaseException | None:
        """Run kopf. What ended it.

        Not by `kopf.operator`, which in the end cancels every task of the process that is younger than itself.
        """
        tasks = await kopf.spawn_tasks(
            registry=registry(self._listener, self._connection.access),
            settings=settings(),
            standalone=True,
            clusterwide=not self._namespaces,
            namespaces=list(self._namespaces),
        )
        self._spawned()
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        errors = (task.exception() for task in done if not task.cancelled())
        return next((error for error in errors if error is not None), None)
