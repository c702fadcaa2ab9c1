"""Errors that end a stream or a connection (RFC 9113, section 7)."""

from enum import IntEnum


class ErrorCode(IntEnum):
    """The codes of RST_STREAM and GOAWAY."""

    NO_ERROR = 0
    PROTOCOL_ERROR = 1
    INTERNAL_ERROR = 2
    FLOW_CONTROL_ERROR = 3
    SETTINGS_TIMEOUT = 4
    STREAM_CLOSED = 5
    FRAME_SIZE_ERROR = 6
    REFUSED_STREAM = 7
    CANCEL = 8
    COMPRESSION_ERROR = 9
    CONNECT_ERROR = 10
    ENHANCE_YOUR_CALM = 11
    INADEQUATE_SECURITY = 12
    HTTP_1_1_REQUIRED = 13


class PeerError(Exception):
    """The peer broke a rule, after which its bytes cannot be trusted: the connection ends with this code."""

    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class MalformedError(Exception):
    """HTTP does not allow this request or its trailers: the stream ends with PROTOCOL_ERROR."""


def protocol_error(message: str) -> PeerError:
    """Return the error of a peer that breaks any other rule of the protocol."""
    return PeerError(ErrorCode.PROTOCOL_ERROR, message)


def frame_size_error(message: str) -> PeerError:
    """Return the error of a frame whose size its type does not allow."""
    return PeerError(ErrorCode.FRAME_SIZE_ERROR, message)


def flow_control_error(message: str) -> PeerError:
    """Return the error of a peer that sends more than a window allows, or makes one larger than 2^31-1."""
    return PeerError(ErrorCode.FLOW_CONTROL_ERROR, message)


def too_much(message: str) -> PeerError:
    """Return the error of a peer that makes this side do more useless work than is tolerated."""
    return PeerError(ErrorCode.ENHANCE_YOUR_CALM, message)
