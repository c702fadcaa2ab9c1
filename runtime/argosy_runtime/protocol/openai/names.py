"""What requests call the parameters that models name in their errors."""

from typing import Final

from .errors import CONSTRAINT, TOOLS, ParameterNames
from .requests.chat import ChatRequest
from .requests.completion import CompletionRequest
from .requests.fields import GenerationFields, JsonObjectFormat, TextFormat
from .requests.response import AllowedFunctions, ResponseRequest, SchemaFormat
from .tools.use import tool_use

EMBEDDING: Final = ParameterNames("input")


def chat_names(request: ChatRequest) -> ParameterNames:
    """Return the names in a request to answer a chat: of alternatives those that it has."""
    names: dict[str, str] = {}
    if request.max_completion_tokens is not None:
        names["max_tokens"] = "max_completion_tokens"
    if request.top_logprobs is not None:
        names["logprobs"] = "top_logprobs"
    use = tool_use(request)
    return ParameterNames("messages", names | _constraint(request, use is not None and use.schema is not None))


def completion_names(request: CompletionRequest) -> ParameterNames:
    """Return the names in a request to continue prompts."""
    return ParameterNames("prompt", _constraint(request, False))


def response_names(request: ResponseRequest) -> ParameterNames:
    """Return the names in a request for a response."""
    names = {
        "max_tokens": "max_output_tokens",
        "logprobs": "top_logprobs",
        "reasoning_effort": "reasoning.effort",
        "verbosity": "text.verbosity",
    }
    if _must_call(request):
        names[CONSTRAINT] = TOOLS
    elif request.text is not None and isinstance(request.text.format, SchemaFormat | JsonObjectFormat):
        names[CONSTRAINT] = "text.format"
    return ParameterNames("input", names)


def _must_call(request: ResponseRequest) -> bool:
    choice = request.tool_choice
    mode = choice.mode if isinstance(choice, AllowedFunctions) else choice
    return bool(request.tools) and mode not in (None, "auto", "none")


def _constraint(request: GenerationFields, must_call: bool) -> dict[str, str]:
    """Return what constrains the text, if anything does: a tool that the model has to call, else the declared form."""
    if request.structured_outputs is not None:
        return {CONSTRAINT: CONSTRAINT}
    if must_call:  # in place of a declared form
        return {CONSTRAINT: TOOLS}
    is_declared = request.response_format is not None and not isinstance(request.response_format, TextFormat)
    return {CONSTRAINT: "response_format"} if is_declared else {}
