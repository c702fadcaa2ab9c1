"""What requests call the parameters that models name in their errors."""

from typing import Final

from .errors import ParameterNames
from .requests.chat import ChatRequest
from .requests.completion import CompletionRequest
from .requests.response import ResponseRequest

EMBEDDING: Final = ParameterNames("input")


def chat_names(request: ChatRequest) -> ParameterNames:
    """Return the names in a request to answer a chat: of alternatives those that it has."""
    names: dict[str, str] = {}
    if request.max_completion_tokens is not None:
        names["max_tokens"] = "max_completion_tokens"
    if request.top_logprobs is not None:
        names["logprobs"] = "top_logprobs"
    if request.structured_outputs is None:
        names["structured_outputs"] = _constraint(request.response_format, "response_format")
    return ParameterNames("messages", names)


def completion_names(request: CompletionRequest) -> ParameterNames:
    """Return the names in a request to continue prompts."""
    constraint = "structured_outputs" if request.structured_outputs is not None else "response_format"
    return ParameterNames("prompt", {"structured_outputs": constraint})


def response_names(request: ResponseRequest) -> ParameterNames:
    """Return the names in a request for a response."""
    declared = request.text.format if request.text is not None else None
    constraint = _constraint(declared, "text.format")
    return ParameterNames(
        "input", {"max_tokens": "max_output_tokens", "logprobs": "top_logprobs", "structured_outputs": constraint}
    )


def _constraint(declared: object, name: str) -> str:
    """Return what constrains the text: the declared form, else a tool that the model has to call."""
    return "tools" if declared is None else name
