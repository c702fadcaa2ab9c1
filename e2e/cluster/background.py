"""Threads that play a part of a cluster as long as a `with` lasts."""

import threading
from collections.abc import Callable
from typing import Self

from kubernetes.client.exceptions import ApiException
from urllib3.exceptions import HTTPError

_PAUSE_S = 0.2


class Background:
    """A thread for each of `loops`, which return soon after `stopping` is set: at the end of the `with`."""

    def __init__(self, *loops: Callable[[], None]) -> None:
        self.stopping = threading.Event()
        self._threads = [threading.Thread(target=loop, name=type(self).__name__, daemon=True) for loop in loops]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stopping.set()
        for thread in self._threads:
            thread.join()

    def repeat(self, follow: Callable[[], None]) -> None:
        """Follow the API server, and again from the list when it is away or no longer has our version."""
        while not self.stopping.is_set():
            try:
                follow()
            except (ApiException, HTTPError):
                self.stopping.wait(_PAUSE_S)
