"""Text of tokens that come one by one: whole characters, stop strings, and the bytes of single tokens."""

from .stops import StopText
from .stream import StreamedText
from .tokens import logprob_entry, token_bytes

__all__ = ["StopText", "StreamedText", "logprob_entry", "token_bytes"]
