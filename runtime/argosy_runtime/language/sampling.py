"""The sampling parameters of a request, by vLLM's names."""

import json
import math
import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from argosy_runtime.errors import ServingError, invalid

DEFAULT_MAX_TOKENS: Final = 16
MOST_CHOICES: Final = 128
"""The largest `n`, which is OpenAI's."""
GREEDY_BELOW: Final = 1e-5
"""Temperatures below it are 0: tokens whose logits differ by 0.001 are already e^100 apart, and engines divide logits
by it in float32, whose largest number is 3.4e38."""
_FLOAT32_MAX: Final = 3.4028234663852886e38
_PATH: Final = re.compile(r"\$\.([^`]*)")
_ALIASES: Final = {"guided_decoding": "structured_outputs"}
"""Former names that Triton's clients still send."""


class StructuredOutputs(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A constraint of the generated text. One of the first six fields is set.

    `json` is a JSON schema, as an object or as a text.
    """

    json: dict[str, Any] | str | None = None
    regex: str | None = None
    choice: list[str] | None = None
    grammar: str | None = None
    json_object: bool | None = None
    structural_tag: str | dict[str, Any] | None = None
    disable_any_whitespace: bool = False
    disable_additional_properties: bool = False
    whitespace_pattern: str | None = None

    @property
    def kind(self) -> str:
        """The name of the field that is set."""
        return self._kinds()[0]

    def problem(self) -> str:
        """Return what is wrong, "" for nothing."""
        kinds = self._kinds()
        if len(kinds) != 1:
            what = "none" if not kinds else " and ".join(kinds)
            return f"one of json, regex, choice, grammar, json_object and structural_tag is expected, not {what}"
        if self.json_object is False:
            return "'json_object' is false; leave it out"
        return "'choice' is empty" if self.choice is not None and not self.choice else ""

    def _kinds(self) -> list[str]:
        names = ("json", "regex", "choice", "grammar", "json_object", "structural_tag")
        return [name for name in names if getattr(self, name) is not None]


class Sampling(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Parameters of a generation. None: the engine's or the model's default.

    `max_tokens` None is as many tokens as the context has room for; left out, it is `DEFAULT_MAX_TOKENS` or what fits.
    `priority`: smaller ones first. `truncate_prompt_tokens` keeps the last tokens of a prompt; -1 keeps as many as the
    context has room for. `logprobs` -1 is all of the vocabulary. `stop_token_ids` are ends in addition to the model's
    own, which `ignore_eos` turns off.
    """

    n: int = 1
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    seed: int | None = None
    max_tokens: int | msgspec.UnsetType | None = msgspec.UNSET
    min_tokens: int = 0
    stop: str | list[str] | None = None
    stop_token_ids: list[int] | None = None
    ignore_eos: bool = False
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    repetition_penalty: float | None = None
    logit_bias: dict[int, float] | None = None
    bad_words: list[str] | None = None
    logprobs: int | None = None
    prompt_logprobs: int | None = None
    skip_special_tokens: bool = True
    spaces_between_special_tokens: bool = True
    include_stop_str_in_output: bool = False
    allowed_token_ids: list[int] | None = None
    truncate_prompt_tokens: int | None = None
    structured_outputs: StructuredOutputs | None = None
    lora_name: str | None = None
    priority: int = 0
    cache_salt: str | None = None
    detokenize: bool = True

    @property
    def most_tokens(self) -> int | None:
        """The most tokens of an answer, None for as many as the context has room for."""
        return DEFAULT_MAX_TOKENS if self.max_tokens is msgspec.UNSET else self.max_tokens

    @property
    def stops(self) -> tuple[str, ...]:
        """The stop strings."""
        if self.stop is None:
            return ()
        return (self.stop,) if isinstance(self.stop, str) else tuple(self.stop)

    @property
    def is_greedy(self) -> bool:
        """Whether the likeliest tokens are asked for."""
        return self.top_k == 1 or (self.temperature is not None and self.temperature < GREEDY_BELOW)


NAMES: Final = Sampling.__struct_fields__
_decoder: Final = msgspec.json.Decoder(Sampling, strict=False)


def from_json(text: bytes) -> Sampling:
    """Return the parameters of a JSON object. Numbers and booleans may be strings, as Triton's clients write them.

    Raises ServingError (INVALID_ARG) that names the parameter.
    """
    try:
        return checked(_decoder.decode(text))
    except (ValueError, RecursionError):
        # Read again, for a message that helps, and for the forms that clients of older releases send.
        return from_mapping(_object(text))


def from_mapping(values: Mapping[str, Any]) -> Sampling:
    """Return the parameters of a mapping. Raises as `from_json`."""
    fields: dict[str, Any] = {}
    for name, value in values.items():
        field = _ALIASES.get(name, name)
        if field not in NAMES:
            raise invalid(f"sampling_parameters: '{name}' is not supported, only {', '.join(NAMES)}")
        fields[field] = _parsed(name, value) if field == "structured_outputs" and isinstance(value, str) else value
    try:
        return checked(msgspec.convert(fields, Sampling, strict=False, str_keys=True))
    except msgspec.ValidationError as error:
        raise _explained(error) from error
    except (ValueError, OverflowError, RecursionError) as error:
        raise invalid(f"sampling_parameters: {error}") from error


def checked(sampling: Sampling) -> Sampling:
    """Return the parameters. Raises ServingError (INVALID_ARG) for a value out of its range."""
    for name, expected, holds in _RULES:
        value = getattr(sampling, name)
        if value is not None and value is not msgspec.UNSET and not holds(value):
            shown = f"{value:g}" if isinstance(value, float) else json.dumps(value)
            raise invalid(f"sampling_parameters: '{name}' is {shown}, expected {expected}")
    most = sampling.most_tokens
    if most is not None and sampling.min_tokens > most:
        raise invalid(f"sampling_parameters: 'min_tokens' is {sampling.min_tokens}, more than 'max_tokens', {most}")
    if sampling.structured_outputs is not None and (problem := sampling.structured_outputs.problem()):
        raise invalid(f"sampling_parameters: 'structured_outputs': {problem}")
    return sampling


def _texts(value: str | list[str]) -> bool:
    return bool(value) if isinstance(value, str) else all(value)


_RULES: Final = (
    ("n", f"1 to {MOST_CHOICES}", lambda value: 1 <= value <= MOST_CHOICES),
    ("temperature", "0 or more, and finite in float32", lambda value: 0 <= value <= _FLOAT32_MAX),
    ("top_p", "more than 0 and at most 1", lambda value: 0 < value <= 1),
    ("top_k", "-1 or 0 (off), or at most 2147483647", lambda value: -1 <= value < 2**31),
    ("min_p", "0 to 1", lambda value: 0 <= value <= 1),
    ("seed", "an integer of 64 bits", lambda value: -(2**63) <= value < 2**64),
    ("max_tokens", "0 to 2147483647", lambda value: 0 <= value < 2**31),
    ("min_tokens", "0 to 2147483647", lambda value: 0 <= value < 2**31),
    ("stop", "no empty string", _texts),
    ("stop_token_ids", "token ids", lambda value: all(0 <= token < 2**31 for token in value)),
    ("presence_penalty", "-2 to 2", lambda value: -2 <= value <= 2),
    ("frequency_penalty", "-2 to 2", lambda value: -2 <= value <= 2),
    ("repetition_penalty", "more than 0, and finite", lambda value: 0 < value <= _FLOAT32_MAX),
    (
        "logit_bias",
        "token ids with finite numbers",
        lambda value: all(0 <= token < 2**31 and math.isfinite(bias) for token, bias in value.items()),
    ),
    ("bad_words", "no empty string", _texts),
    ("logprobs", "-1 (all), or 0 to 2147483647", lambda value: -1 <= value < 2**31),
    ("prompt_logprobs", "-1 (all), or 0 to 2147483647", lambda value: -1 <= value < 2**31),
    (
        "allowed_token_ids",
        "at least one token id",
        lambda value: bool(value) and all(0 <= token < 2**31 for token in value),
    ),
    ("truncate_prompt_tokens", "-1 or at least 1", lambda value: value == -1 or 1 <= value < 2**31),
    ("lora_name", "a name", bool),
    ("priority", "an integer of 32 bits", lambda value: -(2**31) <= value < 2**31),
    ("cache_salt", "a text that is not empty", bool),
)


def _object(text: bytes) -> dict[str, Any]:
    try:
        values = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, ValueError) as error:
        raise invalid(f"input 'sampling_parameters' is not JSON: {error}") from error
    if not isinstance(values, dict):
        raise invalid("input 'sampling_parameters' must be a JSON object")
    return values


def _parsed(name: str, text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, ValueError) as error:
        raise invalid(f"sampling_parameters: '{name}' is not JSON: {error}") from error


def _explained(error: msgspec.ValidationError) -> ServingError:
    """Return an error that names the parameter: ``Expected `int`, got `str` - at `$.n` `` is n's."""
    problem, _, path = str(error).partition(" - at ")
    name = _PATH.search(path)
    problem = problem[:1].lower() + problem[1:]
    return invalid(f"sampling_parameters: '{name[1]}': {problem}" if name else f"sampling_parameters: {problem}")
