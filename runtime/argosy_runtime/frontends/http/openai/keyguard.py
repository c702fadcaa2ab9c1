"""The API keys of a server: read from their file at the start, and again when it changes."""

import asyncio
import logging
from pathlib import Path

from argosy_runtime.protocol.openai.keys import ApiKeys, KeyFileError, NoKeysError

_log = logging.getLogger("argosy.openai")
PERIOD_S = 5.0
"""How often the file is looked at. A Secret's volume itself changes a minute after the Secret."""


def read_keys(path: Path) -> ApiKeys:
    """Return the keys in a file. Raises KeyFileError, also where it cannot be read."""
    try:
        return ApiKeys.parse(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise KeyFileError(f"it cannot be read: {error}") from None


class KeyGuard:
    """The keys that are accepted now: those that were read last where the file cannot be read or has a wrong line."""

    def __init__(self, path: Path, keys: ApiKeys) -> None:
        self.keys = keys
        self._path = path
        self._problem = ""

    async def follow(self) -> None:
        """Read the file again periodically, for ever."""
        while True:
            await asyncio.sleep(PERIOD_S)
            await self.refresh()

    async def refresh(self) -> None:
        """Read the file again. One without keys takes the former ones back, so that none is accepted."""
        try:
            keys = await asyncio.to_thread(read_keys, self._path)
        except NoKeysError:
            keys = ApiKeys(())
        except KeyFileError as error:
            if str(error) != self._problem:
                self._problem = str(error)
                _log.error("the API keys in %s stay as they were: %s", self._path, error)
            return
        self._problem = ""
        if keys != self.keys:
            self.keys = keys
            _log.info("API keys read from %s: %d", self._path, len(keys.digests))
