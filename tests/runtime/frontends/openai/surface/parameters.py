"""What becomes of each parameter of the official client's methods: it has an effect, has none, or is refused."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

Shows = Callable[[Any, Any], object]
"""Returns whether an answer, and the GenerationRequest that the model got, show the effect of a parameter."""


@dataclass(frozen=True)
class Effect:
    """The parameter has an effect that `shows`; `more` are the others that it needs."""

    value: Any
    shows: Shows
    more: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class NoEffect:
    """The parameter has no meaning for a server that keeps nothing: it is taken, and the docs say so."""

    value: Any


@dataclass(frozen=True)
class Refused:
    """The parameter is refused with a message that names it."""

    value: Any
    code: str = "unsupported_parameter"


Parameters = Mapping[str, Effect | NoEffect | Refused]

USER = {"role": "user", "content": "hello"}
FUNCTION = {"name": "clock", "parameters": {"type": "object", "properties": {}}}
TOOL = {"type": "function", "function": FUNCTION}
FLAT_TOOL = {"type": "function", **FUNCTION}
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}}


def sampled(name: str, value: Any) -> Effect:
    """Return the effect of a parameter that reaches the model as it is."""
    return Effect(value, lambda _, request: getattr(request.sampling, name) == value)


def echoed(name: str, value: Any) -> Effect:
    """Return the effect of a parameter that the response repeats."""
    return Effect(value, lambda answer, _: getattr(answer, name) == value)


def _prepared(name: str, value: Any) -> Effect:
    """Return the effect of a parameter that is a variable of the chat template."""
    return Effect(value, lambda _, request: request.prompt.chat_template_kwargs[name] == value)


def _has_usage(answer: Any, _: Any) -> object:
    return answer[-1].usage.completion_tokens


def _is_single(_: Any, request: Any) -> object:
    return request.sampling.structured_outputs.json["maxItems"] == 1


STREAM = Effect(True, lambda answer, request: request.stream and len(answer) > 10)

SHARED: Parameters = {
    "frequency_penalty": sampled("frequency_penalty", 0.5),
    "logit_bias": Effect({"7": -3}, lambda _, request: request.sampling.logit_bias == {7: -3.0}),
    "max_tokens": Effect(2, lambda answer, _: answer.choices[0].finish_reason == "length"),
    "model": Effect("pirate", lambda answer, _: answer.model == "pirate"),
    "n": Effect(3, lambda answer, _: len(answer.choices) == 3),
    "presence_penalty": sampled("presence_penalty", -0.5),
    "seed": sampled("seed", 11),
    "stream": STREAM,
    "stream_options": Effect({"include_usage": True}, _has_usage, {"stream": True}),
    "temperature": sampled("temperature", 0.25),
    "top_p": sampled("top_p", 0.75),
    "user": NoEffect("somebody"),
}

CHAT: Parameters = {
    **SHARED,
    "audio": Refused({"voice": "alloy", "format": "wav"}),
    "function_call": Refused("auto"),
    "functions": Refused([FUNCTION]),
    "logprobs": Effect(True, lambda answer, _: answer.choices[0].logprobs.content),
    "max_completion_tokens": SHARED["max_tokens"],
    "messages": Effect([USER, USER], lambda _, request: len(request.prompt.messages) == 2),
    "metadata": NoEffect({"a": "b"}),
    "modalities": Refused(["text", "audio"]),
    "moderation": Refused({"model": "m"}),
    "parallel_tool_calls": Effect(False, _is_single, {"tools": [TOOL], "tool_choice": "required"}),
    "prediction": NoEffect({"type": "content", "content": "Grüße"}),
    "prompt_cache_key": NoEffect("key"),
    "prompt_cache_options": NoEffect({"mode": "explicit"}),
    "prompt_cache_retention": NoEffect("24h"),
    "reasoning_effort": _prepared("reasoning_effort", "low"),
    "response_format": Effect(
        {"type": "json_schema", "json_schema": {"name": "a", "schema": SCHEMA}},
        lambda _, request: request.sampling.structured_outputs.json == SCHEMA,
    ),
    "safety_identifier": NoEffect("hash"),
    "service_tier": echoed("service_tier", "default"),
    "stop": Effect([" aus"], lambda answer, _: answer.choices[0].message.content == "Grüße"),
    "store": NoEffect(True),
    "tool_choice": Effect("none", lambda _, request: request.prompt.tools is None, {"tools": [TOOL]}),
    "tools": Effect([TOOL], lambda _, request: request.prompt.tools[0]["function"]["name"] == "clock"),
    "top_logprobs": Effect(
        2, lambda answer, _: len(answer.choices[0].logprobs.content[0].top_logprobs) == 2, {"logprobs": True}
    ),
    "verbosity": _prepared("verbosity", "low"),
    "web_search_options": Refused({}),
}

COMPLETIONS: Parameters = {
    **SHARED,
    "best_of": Effect(3, lambda answer, request: (len(answer.choices), request.sampling.n) == (1, 3)),
    "echo": Effect(True, lambda answer, _: answer.choices[0].text.startswith("hello")),
    "logprobs": Effect(2, lambda answer, _: answer.choices[0].logprobs.tokens),
    "prompt": Effect("other", lambda _, request: request.prompt == "other"),
    "stop": Effect([" aus"], lambda answer, _: answer.choices[0].text == "Grüße"),
    "suffix": Refused("end"),
}

EMBEDDINGS: Parameters = {
    "dimensions": Effect(2, lambda answer, _: len(answer.data[0].embedding) == 2),
    "encoding_format": Effect("base64", lambda answer, _: isinstance(answer.data[0].embedding, str)),
    "input": Effect(["a", "b"], lambda answer, _: len(answer.data) == 2),
    "model": Effect("plain", lambda answer, _: answer.model == "plain"),
    "user": NoEffect("somebody"),
}

RESPONSES: Parameters = {
    "access_programs": Refused({"ids": []}),
    "background": Refused(True),
    "background_options": Refused({"completion_window": "2h"}),
    "context_management": Refused([{"type": "compaction"}]),
    "conversation": Refused("conv_1"),
    "image": Refused({"detail": "low"}),
    "include": Effect(
        ["message.output_text.logprobs"], lambda answer, _: answer.output[0].content[0].logprobs[0].token
    ),
    "input": CHAT["messages"],
    "instructions": Effect("Be brief.", lambda _, request: request.prompt.messages[0]["role"] == "system"),
    "max_output_tokens": Effect(2, lambda answer, _: answer.incomplete_details.reason == "max_output_tokens"),
    "max_tool_calls": Refused(3),
    "metadata": echoed("metadata", {"a": "b"}),
    "model": SHARED["model"],
    "moderation": Refused({"model": "m"}),
    "parallel_tool_calls": Effect(False, _is_single, {"tools": [FLAT_TOOL], "tool_choice": "required"}),
    "previous_response_id": Refused("resp_1"),
    "prompt": Refused({"id": "p"}),
    "prompt_cache_key": echoed("prompt_cache_key", "key"),
    "prompt_cache_options": NoEffect({"mode": "explicit"}),
    "prompt_cache_retention": NoEffect("24h"),
    "reasoning": Effect({"effort": "low"}, lambda _, request: request.prompt.chat_template_kwargs["reasoning_effort"]),
    "safety_identifier": echoed("safety_identifier", "hash"),
    "service_tier": NoEffect("flex"),
    "store": Refused(True),
    "stream": STREAM,
    "stream_options": Effect(
        {"include_obfuscation": True},
        lambda answer, _: [event.obfuscation for event in answer if event.type == "response.output_text.delta"],
        {"stream": True},
    ),
    "temperature": sampled("temperature", 0.25),
    "text": Effect(
        {"format": {"type": "json_schema", "name": "a", "schema": SCHEMA}},
        lambda _, request: request.sampling.structured_outputs.json == SCHEMA,
    ),
    "tool_choice": Effect("none", lambda _, request: request.prompt.tools is None, {"tools": [FLAT_TOOL]}),
    "tools": Effect([FLAT_TOOL], lambda _, request: request.prompt.tools[0]["function"]["name"] == "clock"),
    "top_logprobs": Effect(2, lambda answer, _: len(answer.output[0].content[0].logprobs[0].top_logprobs) == 2),
    "top_p": sampled("top_p", 0.75),
    "truncation": Refused("auto", "unsupported_value"),
    "user": echoed("user", "somebody"),
}
