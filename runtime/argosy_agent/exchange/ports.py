"""What an agent needs of the world it reports to: a source of desired repositories and a place for its state."""

from collections.abc import AsyncIterator
from typing import Protocol


class PublishError(Exception):
    """A state could not be written now; the message says why and, where someone can help, the way out."""


class DesiredSource(Protocol):
    """Where texts of desired repositories come from."""

    def texts(self) -> AsyncIterator[str]:
        """Yield every text as it comes, the same one again whenever the place was looked at anew. Never ends, never
        fails: what goes wrong is logged and tried again.
        """


class StateSink(Protocol):
    """Where a state's text goes."""

    async def write(self, text: str) -> None:
        """Replace what stands there. Raises PublishError."""
