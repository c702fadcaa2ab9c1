"""What a request lets its model call, and how the model is made to."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from argosy_runtime.language import StructuredOutputs
from argosy_runtime.protocol.openai.errors import ApiError, invalid
from argosy_runtime.protocol.openai.requests.chat import ChatRequest
from argosy_runtime.protocol.openai.requests.tools import (
    AllowedChoice,
    CustomChoice,
    CustomTool,
    FunctionDefinition,
    NamedChoice,
    Tool,
)

_ANY_ARGUMENTS: Final[dict[str, Any]] = {"type": "object"}


@dataclass(frozen=True, slots=True)
class ToolUse:
    """The functions that a model may call. `required`: it must call one; `named`: it must call this one.

    Unless `parallel`, an answer has one call at most.
    """

    functions: tuple[FunctionDefinition, ...]
    required: bool = False
    named: str = ""
    parallel: bool = True

    @property
    def names(self) -> frozenset[str]:
        """The names of the functions."""
        return frozenset(function.name for function in self.functions)

    @property
    def schema(self) -> dict[str, Any] | None:
        """The JSON schema of the text that a model has to write, None if it may write anything."""
        if self.named:
            return _arguments(next(function for function in self.functions if function.name == self.named))
        if not self.required:
            return None
        calls: dict[str, Any] = {"type": "array", "minItems": 1, "items": {"anyOf": [_call(f) for f in self.functions]}}
        return calls if self.parallel else {**calls, "maxItems": 1}


def tool_use(request: ChatRequest) -> ToolUse | None:
    """Return what the model may call, None for nothing. Raises ApiError for tools that this server cannot offer."""
    if request.tools is None:
        for name in ("tool_choice", "parallel_tool_calls"):
            if getattr(request, name) is not None:
                message = f"'{name}' is only allowed when 'tools' are specified."
                raise invalid(message, name, "invalid_parameter_combination")
        return None
    functions = tuple(_functions(request.tools))
    choice = request.tool_choice or "auto"
    parallel = request.parallel_tool_calls is not False
    if choice == "none" or not functions:
        return None
    if isinstance(choice, CustomChoice):
        raise _no_custom("tool_choice")
    if isinstance(choice, NamedChoice):
        name = choice.function.name
        return ToolUse(_chosen(functions, [name]), named=name, parallel=False)
    if isinstance(choice, AllowedChoice):
        names = [tool.function.name for tool in choice.allowed_tools.tools]
        allowed = _chosen(functions, names)
        return ToolUse(allowed, required=choice.allowed_tools.mode == "required", parallel=parallel)
    return ToolUse(functions, required=choice == "required", parallel=parallel)


def constrained(request: ChatRequest, use: ToolUse | None) -> ChatRequest:
    """Return the request with the constraint of its text that makes the model call a function, if it has to."""
    schema = use.schema if use is not None else None
    if schema is None:
        return request
    if request.structured_outputs is not None:
        message = "'structured_outputs' and a required tool both constrain the output: give one of them."
        raise invalid(message, "structured_outputs", "invalid_parameter_combination")
    return msgspec.structs.replace(request, structured_outputs=StructuredOutputs(json=schema), response_format=None)


def tool_documents(use: ToolUse) -> list[dict[str, Any]]:
    """Return the functions as chat templates read them."""
    return [{"type": "function", "function": _document(function)} for function in use.functions]


def _document(function: FunctionDefinition) -> dict[str, Any]:
    return {
        "name": function.name,
        "description": function.description or "",
        "parameters": function.parameters or {"type": "object", "properties": {}},
    }


def _functions(tools: Sequence[Tool]) -> list[FunctionDefinition]:
    functions: list[FunctionDefinition] = []
    for tool in tools:
        if isinstance(tool, CustomTool):
            raise _no_custom("tools")
        functions.append(tool.function)
    names = [function.name for function in functions]
    if len(set(names)) < len(names):
        raise invalid("Invalid 'tools': two functions have one name.", "tools", "invalid_value")
    return functions


def _no_custom(param: str) -> ApiError:
    message = f"Invalid '{param}': models of this server call tools of type 'function' alone."
    return invalid(message, param, "unsupported_value")


def _chosen(functions: Sequence[FunctionDefinition], names: Sequence[str]) -> tuple[FunctionDefinition, ...]:
    by_name = {function.name: function for function in functions}
    for name in names:
        if name not in by_name:
            raise invalid(f"Tool choice '{name}' not found in 'tools' parameter.", "tool_choice", "invalid_value")
    return tuple(by_name[name] for name in dict.fromkeys(names))


def _arguments(function: FunctionDefinition) -> dict[str, Any]:
    return function.parameters or _ANY_ARGUMENTS


def _call(function: FunctionDefinition) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {"name": {"type": "string", "enum": [function.name]}, "parameters": _arguments(function)},
        "required": ["name", "parameters"],
        "additionalProperties": False,
    }
