"""Bodies of OpenAI's API, read and made requests of a model."""

import json
from collections.abc import Callable, Iterator
from typing import Any

from tests.fuzz.target import Target
from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.errors import ErrorKind, ServingError
from argosy_runtime.language import GenerationRequest
from argosy_runtime.language.tensors import completed
from argosy_runtime.protocol.openai.errors import ApiError, encode_error
from argosy_runtime.protocol.openai.generation import LanguageModel, chat_inference, completion_inferences
from argosy_runtime.protocol.openai.requests import chat, completion, embedding, response

_MODEL = LanguageModel.of(completed(ModelConfig(name="m")))
_USER = {"role": "user", "content": "hello"}
_TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}, "strict": True}}


def _refused(decode: Callable[[], Any]) -> None:
    """Decode, or be refused in OpenAI's words, which can be sent."""
    try:
        decode()
    except ApiError as error:
        assert 400 <= error.status < 500
        assert json.loads(encode_error(error))["error"]["message"]
    except ServingError as error:
        assert error.kind in (ErrorKind.INVALID_ARG, ErrorKind.UNSUPPORTED)


def chats(data: bytes) -> None:
    """Read a chat."""
    _refused(lambda: GenerationRequest.read(chat_inference(_MODEL, chat.decode(data), "r")))


def _chat_seeds() -> Iterator[bytes]:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    yield from _bodies(
        {"messages": [_USER], "temperature": 0.5, "stop": ["a"], "seed": 1, "stream": True},
        {"messages": [{"role": "user", "content": [{"type": "text", "text": "a"}, image]}], "logprobs": True},
        {"messages": [_USER, {"role": "assistant", "tool_calls": [call]}, {"role": "tool", "tool_call_id": "c"}]},
        {"messages": [_USER], "tools": [_TOOL], "tool_choice": "required", "logit_bias": {"5": 1}},
        {"messages": [_USER], "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": {}}}},
        {"messages": [_USER], "metadata": {"a": "b"}, "stream_options": {"include_usage": True}, "n": 2},
    )
    yield b'{"model":"m","messages":[{"role":"user","content":"\\ud800"}]}'


def completions(data: bytes) -> None:
    """Read a completion."""
    requests = lambda: completion_inferences(_MODEL, completion.decode(data), "r")  # noqa: E731  (not called at once)
    _refused(lambda: [GenerationRequest.read(request) for request in requests()])


def _completion_seeds() -> Iterator[bytes]:
    yield from _bodies(
        {"prompt": "a", "echo": True, "logprobs": 3, "best_of": 2, "n": 2},
        {"prompt": ["a", "b"], "suffix": "c", "max_tokens": 0},
        {"prompt": [[1, 2], [3]], "stream": True},
        {"prompt": [1, 2], "guided_json": {"type": "object"}},
    )


def embeddings(data: bytes) -> None:
    """Read a request for embeddings."""
    _refused(lambda: embedding.decode(data))


def _embedding_seeds() -> Iterator[bytes]:
    yield from _bodies({"input": ["a"], "encoding_format": "base64", "dimensions": 3}, {"input": [[1, 2]]})


def responses(data: bytes) -> None:
    """Read a request of the API of responses, as the chat that it is."""
    _refused(lambda: response.decode(data))


def _response_seeds() -> Iterator[bytes]:
    yield from _bodies(
        {"input": "a", "instructions": "b", "max_output_tokens": 5},
        {
            "input": [
                {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "a"}]},
                {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
                {"type": "function_call_output", "call_id": "c", "output": "1"},
            ],
            "tools": [{"type": "function", "name": "f", "parameters": {}}],
            "text": {"format": {"type": "text"}},
        },
    )


def _bodies(*bodies: dict[str, Any]) -> Iterator[bytes]:
    for body in bodies:
        yield json.dumps({"model": "m", **body}).encode()


TARGETS = [
    Target("openai-chats", chats, _chat_seeds),
    Target("openai-completions", completions, _completion_seeds),
    Target("openai-embeddings", embeddings, _embedding_seeds),
    Target("openai-responses", responses, _response_seeds),
]
