"""The work of a request: the same number of tokens in and out on every endpoint."""

from dataclasses import dataclass
from enum import StrEnum

import msgspec


class Api(StrEnum):
    """The route of OpenAI's API that requests take."""

    COMPLETIONS = "completions"
    CHAT = "chat"


PATHS = {Api.COMPLETIONS: "/v1/completions", Api.CHAT: "/v1/chat/completions"}


@dataclass(frozen=True, slots=True)
class Work:
    """Tokens of each request. A prompt's tokens include those that the endpoint adds, such as a chat template's."""

    prompt_tokens: int
    output_tokens: int
    api: Api = Api.COMPLETIONS


def load_body(work: Work, model: str, prompt: str) -> bytes:
    """Return a streaming request whose answer has exactly the work's output tokens, as JSON.

    `min_tokens` and `ignore_eos` are extensions that vLLM, TensorRT-LLM and Argosy have.
    """
    fields = {
        "max_tokens": work.output_tokens,
        "min_tokens": work.output_tokens,
        "ignore_eos": True,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    return msgspec.json.encode(_request(work.api, model, prompt) | fields)


def count_body(api: Api, model: str, prompt: str) -> bytes:
    """Return a request whose answer is one token, to learn from its usage how many tokens the prompt has."""
    return msgspec.json.encode(_request(api, model, prompt) | {"max_tokens": 1})


def _request(api: Api, model: str, prompt: str) -> dict[str, object]:
    text: dict[str, object] = {"prompt": prompt}
    if api is Api.CHAT:
        text = {"messages": [{"role": "user", "content": prompt}]}
    return {"model": model, "temperature": 0} | text
