"""The chat that answers a request for a response."""

from argosy_runtime.protocol.openai.requests import tools
from argosy_runtime.protocol.openai.requests.chat import ChatRequest
from argosy_runtime.protocol.openai.requests.fields import (
    JsonObjectFormat,
    JsonSchema,
    JsonSchemaFormat,
    ResponseFormat,
    StreamOptions,
)
from argosy_runtime.protocol.openai.requests.items import messages
from argosy_runtime.protocol.openai.requests.response import (
    AllowedFunctions,
    ResponseRequest,
    SchemaFormat,
    ToolChoiceFunction,
)


def chat_request(request: ResponseRequest) -> ChatRequest:
    """Return the chat. Raises ApiError for an input that is none."""
    logprobs = request.requested_logprobs
    return ChatRequest(
        model=request.model,
        messages=messages(request.input, request.instructions),
        max_completion_tokens=request.max_output_tokens,
        temperature=request.temperature,
        top_p=request.top_p,
        logprobs=None if logprobs is None else True,
        top_logprobs=logprobs,
        response_format=_format(request),
        reasoning_effort=request.reasoning.effort if request.reasoning else None,
        verbosity=request.text.verbosity if request.text else None,
        tools=_tools(request),
        tool_choice=_choice(request) if request.tools or request.tool_choice not in ("auto", "none") else None,
        parallel_tool_calls=request.parallel_tool_calls if request.tools else None,
        stream=request.stream,
        stream_options=StreamOptions(include_usage=True) if request.streams else None,
    )


def _format(request: ResponseRequest) -> ResponseFormat | None:
    declared = request.text.format if request.text else None
    if isinstance(declared, SchemaFormat):
        return JsonSchemaFormat(JsonSchema(declared.name, declared.description, declared.schema, declared.strict))
    return declared if isinstance(declared, JsonObjectFormat) else None


def _tools(request: ResponseRequest) -> list[tools.Tool] | None:
    if not request.tools:
        return None
    return [
        tools.FunctionTool(
            tools.FunctionDefinition(function.name, function.description, function.parameters, function.strict)
        )
        for function in request.tools
    ]


def _choice(request: ResponseRequest) -> tools.ToolChoice | None:
    choice = request.tool_choice
    if isinstance(choice, ToolChoiceFunction):
        return _named(choice)
    if isinstance(choice, AllowedFunctions):
        return tools.AllowedChoice(tools.AllowedTools(choice.mode, [_named(tool) for tool in choice.tools]))
    return choice


def _named(function: ToolChoiceFunction) -> tools.NamedChoice:
    return tools.NamedChoice(tools.NamedFunction(function.name))
