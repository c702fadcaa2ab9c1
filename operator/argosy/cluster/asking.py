"""Asks an API server until it answers."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TypeVar

from .errors import GoneError, UnreachableError

log = logging.getLogger(__name__)

AGAIN_S = 2.0

Answer = TypeVar("Answer")


async def answered(ask: Callable[[], Awaitable[Answer]], what: str) -> Answer:
    """What `ask` gives, as soon as the API server answers. Raises any other ApiError."""
    told = ""
    while True:
        try:
            return await ask()
        except (UnreachableError, GoneError) as error:
            if str(error) != told:
                told = str(error)
                log.warning("%s cannot be read yet: %s", what, told)
            await asyncio.sleep(AGAIN_S)
