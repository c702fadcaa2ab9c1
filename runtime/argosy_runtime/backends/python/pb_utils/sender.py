"""`InferenceResponseSender`: how a model answers a request from any thread, during `execute` or after it."""

import threading
from typing import Any

from argosy_runtime.backends.contract import Responder
from argosy_runtime.errors import ServingError, internal
from argosy_runtime.messages import InferRequest, InferResponse

from . import arguments
from .errors import TritonModelException
from .reaper import reaper
from .response import InferenceResponse

TRITONSERVER_RESPONSE_COMPLETE_FINAL = 1
_UINT32 = 2**32 - 1


class ResponseChannel:
    """The server's end of one request: counts responses, and answers for a model that drops it without an answer."""

    def __init__(
        self,
        request: InferRequest,
        index: int,
        responder: Responder,
        version: str,
        *,
        decoupled: bool,
        requested: frozenset[str],
    ) -> None:
        self._request = request
        self._index = index
        self._responder = responder
        self._version = version
        self._decoupled = decoupled
        self._requested = requested
        self._lock = threading.Lock()
        self._sent = 0
        self._closed = False  # the model may send nothing more
        self._ending = False  # the last response is being sent, or was
        self._answered = False  # the last response has been sent

    @property
    def is_answered(self) -> bool:
        """True once the responder has the last response, since then the batch may end."""
        return self._answered

    def is_cancelled(self) -> bool:
        """Return whether the client has gone."""
        return self._responder.is_cancelled(self._index)

    def admit(self, response: InferenceResponse | None, final: bool) -> None:
        """Count a response before it is sent.

        Raises TritonModelException, and counts nothing, where it is not allowed.
        """
        with self._lock:
            if not self._decoupled:
                self._check_single(response, final)
            if self._closed:
                raise TritonModelException("Unable to send response. Response sender has been closed.")
            self._closed = final
            self._sent += 1

    def _check_single(self, response: InferenceResponse | None, final: bool) -> None:
        if response is not None and self._sent > 0:
            raise TritonModelException(
                "Unable to send response. Non-decoupled model cannot send more than one response."
            )
        if response is None and final and self._sent == 0:
            raise TritonModelException(
                "Unable to send response. Non-decoupled model cannot send complete final before sending a response."
            )

    def deliver(self, response: InferenceResponse | None, final: bool) -> None:
        """Send what `admit` let through. The only response of a model that is not decoupled is its last."""
        last = final or not self._decoupled
        if response is not None:
            # The only response of a model that is not decoupled leaves with the end of its batch.
            later = not self._decoupled
            message = response.to_message(self._request, self._version, self._requested, last, later)
        elif self._decoupled:
            message = self._bare()
        else:
            return
        if not last:
            self._responder.send(self._index, message)
        elif self._end(closed=final):
            self._send_last(message)

    def fail(self, error: ServingError) -> None:
        """Close, and tell the client why, unless it already has its last response."""
        if self._end():
            self._send_last(self._bare(error))

    def release(self) -> None:
        """Close without an answer: the request comes again."""
        if self._end():
            self._answered = True

    def abandon(self) -> None:
        """End a request that the model has dropped. A stream ends; a client without any response gets an error."""
        if self._end():
            error = None if self._sent else internal(_unanswered(self._request.model_name))
            self._send_last(self._bare(error))

    def _send_last(self, message: InferResponse) -> None:
        self._responder.send(self._index, message)
        self._answered = True

    def _end(self, closed: bool = True) -> bool:
        """Close the channel.

        Return whether the client still waits for its last response, which the caller now sends.
        """
        with self._lock:
            waiting = not self._ending
            self._ending = True
            self._closed = self._closed or closed
        return waiting

    def _bare(self, error: ServingError | None = None) -> InferResponse:
        return InferResponse(self._request.model_name, self._version, self._request.id, error=error)


def _unanswered(model: str) -> str:
    return f"Python model '{model}' released its request without sending a response."


class InferenceResponseSender:
    """What `get_response_sender` returns. Safe in any thread."""

    def __init__(self, channel: ResponseChannel) -> None:
        self._channel = channel

    def __del__(self) -> None:
        if not self._channel.is_answered:
            reaper.put(self._channel.abandon)

    def send(self, response: InferenceResponse | None = None, flags: int = 0) -> None:
        """Send a response, the final flag (TRITONSERVER_RESPONSE_COMPLETE_FINAL), or both at once."""
        if type(flags) is not int or flags < 0:
            flags = arguments.integer("flags", flags, 0, _UINT32)
        if flags not in (0, TRITONSERVER_RESPONSE_COMPLETE_FINAL):
            raise TritonModelException("Unable to send response. Unsupported flag provided.")
        if flags == 0 and response is None:
            raise TritonModelException(
                "Inference Response object must be provided when the response flags is set to zero."
            )
        _check_type(response)
        final = flags == TRITONSERVER_RESPONSE_COMPLETE_FINAL
        self._channel.admit(response, final)
        self._channel.deliver(response, final)

    def is_cancelled(self) -> bool:
        """Return whether the client no longer waits."""
        return self._channel.is_cancelled()


def _check_type(response: Any) -> None:
    if response is not None and not hasattr(response, "to_message"):
        raise TypeError(f"send() takes an InferenceResponse, not {type(response).__name__}")
