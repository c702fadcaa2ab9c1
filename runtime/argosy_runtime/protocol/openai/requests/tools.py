"""Tools that a model may call, and how it is to choose among them."""

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

FunctionName = Annotated[str, Meta(pattern="^[a-zA-Z0-9_-]{1,64}$")]


class FunctionDefinition(Struct, forbid_unknown_fields=True):
    """A function: its name, what it does, and the JSON schema of its arguments.

    `strict` has no effect on calls that a model makes by its own choice.
    """

    name: FunctionName
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None


class FunctionTool(Struct, tag_field="type", tag="function", forbid_unknown_fields=True):
    """A tool that is a function."""

    function: FunctionDefinition


class CustomTool(Struct, tag_field="type", tag="custom", forbid_unknown_fields=True):
    """A tool whose input is plain text, which models of this server do not call."""

    custom: dict[str, Any]


class NamedFunction(Struct, forbid_unknown_fields=True):
    """A function by its name."""

    name: str


class NamedChoice(Struct, tag_field="type", tag="function", forbid_unknown_fields=True):
    """The choice of one function, which the model must call."""

    function: NamedFunction


class CustomChoice(Struct, tag_field="type", tag="custom", forbid_unknown_fields=True):
    """The choice of one custom tool."""

    custom: NamedFunction


class AllowedTools(Struct, forbid_unknown_fields=True):
    """Some of the tools, of which the model may or must call one."""

    mode: Literal["auto", "required"]
    tools: Annotated[list[NamedChoice], Meta(min_length=1)]


class AllowedChoice(Struct, tag_field="type", tag="allowed_tools", forbid_unknown_fields=True):
    """The choice among some of the tools."""

    allowed_tools: AllowedTools


Tool = FunctionTool | CustomTool
ToolChoice = Literal["none", "auto", "required"] | NamedChoice | CustomChoice | AllowedChoice
