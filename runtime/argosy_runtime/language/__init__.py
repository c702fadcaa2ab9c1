"""The contract of language models: the tensors of a request and of its responses, for all backends that generate text.

What may live here: names and datatypes of the tensors, reading of requests, writing and reading of responses, rendering
of chat templates, text that ends at whole characters and at stop strings. No engine, no framework, no wire format.

A request has one of `text_input` (text), `input_ids` (tokens) and `messages` (a chat, as JSON). A backend reads it
(`GenerationRequest.read`), generates, and makes a response of the deltas of each step (`ResponseBuilder`). A front end
reads those again (`ResponseReader`).
"""

from .chat import Chat, ChatTemplate
from .deltas import Delta, LogprobEntry
from .reading import ResponseReader
from .requests import GenerationRequest, Tokens
from .responses import ResponseBuilder
from .sampling import Sampling, StructuredOutputs
from .tensors import is_embedding_model, is_language_model
from .text import StopText, StreamedText, logprob_entry, token_bytes

__all__ = [
    "Chat",
    "ChatTemplate",
    "Delta",
    "GenerationRequest",
    "LogprobEntry",
    "ResponseBuilder",
    "ResponseReader",
    "Sampling",
    "StopText",
    "StreamedText",
    "StructuredOutputs",
    "Tokens",
    "is_embedding_model",
    "is_language_model",
    "logprob_entry",
    "token_bytes",
]
