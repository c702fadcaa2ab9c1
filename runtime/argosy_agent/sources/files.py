"""The desired repository and the state as files: for tests, and for use by hand."""

import asyncio
import logging
from collections.abc import AsyncIterator
from pathlib import Path

from argosy_agent.jsonfiles import write_text
from argosy_agent.publisher import PublishError

LOG = logging.getLogger(__name__)


class FileSource:
    """A file whose text is the desired repository; it may come later, and may be replaced by a rename."""

    def __init__(self, path: Path) -> None:
        self._path = path.absolute()

    async def texts(self) -> AsyncIterator[str]:
        """Yield its text now and after every change."""
        from watchfiles import awatch  # only where files are watched at all

        changes = awatch(self._path.parent, recursive=False, step=50, debounce=200)
        change = asyncio.ensure_future(anext(changes))
        try:
            await asyncio.sleep(0)  # after its first step the watch stands: no edit is missed behind the first reading
            while True:
                text = self._read()
                if text is not None:
                    yield text
                await change
                change = asyncio.ensure_future(anext(changes))
        finally:
            change.cancel()
            await asyncio.gather(change, return_exceptions=True)

    def _read(self) -> str | None:
        try:
            return self._path.read_text()
        except FileNotFoundError:
            return None
        except (OSError, UnicodeDecodeError) as error:
            LOG.warning("%s cannot be read: %s", self._path, error)
            return None


class FileSink:
    """A file that holds the state."""

    def __init__(self, path: Path) -> None:
        self._path = path

    async def write(self, text: str) -> None:
        """Replace the file at once. Raises PublishError."""
        try:
            await asyncio.to_thread(write_text, self._path, text)
        except OSError as error:
            raise PublishError(f"{self._path} cannot be written: {error.strerror or error}") from error
