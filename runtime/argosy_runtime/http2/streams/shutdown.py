"""The end of a connection: its client is sent away by GOAWAY, gently or at once (RFC 9113, 6.8)."""

from typing import Final

from argosy_runtime.http2 import frames
from argosy_runtime.http2.errors import ErrorCode

from .output import Output

_DRAIN_PING: Final = b"draining"


class Shutdown:
    """How far the end of a connection has come. Streams say when they are answered, and when none is open."""

    __slots__ = ("_announced", "_output", "closing", "draining", "last_stream", "refusing")

    def __init__(self, output: Output) -> None:
        self.last_stream = 0
        """The highest id of a stream that the client has opened."""
        self.draining = False
        self.refusing = False
        """Whether new requests are refused."""
        self.closing = False
        """Whether nothing is read any more; once the output is sent the transport is to be closed."""
        self._announced = False
        self._output = output

    def drain(self) -> None:
        """Ask the client by GOAWAY to use another connection. Requests that arrive in the meantime are answered.

        A client without a request gets the GOAWAY with its first response; sent earlier, it might not arrive.
        """
        self.draining = True
        if self._announced or self.refusing or self.closing or not self.last_stream:
            return
        self._announced = True
        self._output.write(frames.goaway(frames.MAX_STREAM_ID, ErrorCode.NO_ERROR) + frames.ping(_DRAIN_PING))

    def is_acknowledged(self, payload: bytes) -> bool:
        """Return whether an answer to a PING says that the client has read the GOAWAY of `drain`."""
        return self._announced and payload == _DRAIN_PING

    def finish(self, is_idle: bool) -> None:
        """Refuse new requests, and close once no stream is open."""
        if not self.refusing and not self.closing:
            self.refusing = True
            self._output.write(frames.goaway(self.last_stream, ErrorCode.NO_ERROR))
            if is_idle:
                self.close()

    def close(self) -> None:
        """Close once the output is sent."""
        self.closing = True
        self._output.wake()

    def fail(self, code: ErrorCode, message: str) -> None:
        """Send the reason, and close."""
        self._output.write(frames.goaway(self.last_stream, code, message))
        self.closing = True
