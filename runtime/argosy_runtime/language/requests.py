"""A request for a generation, read from its tensors."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from argosy_runtime.errors import invalid
from argosy_runtime.messages import InferRequest

from . import inputs, sampling
from .chat import Chat
from .defaults import with_defaults
from .sampling import Sampling
from .tensors import FLAGGED_OUTPUTS, INPUT_IDS, MESSAGES, OUTPUT_IDS, OUTPUTS, PROMPTS, TEXT_INPUT, TEXT_OUTPUT


@dataclass(frozen=True, slots=True)
class Tokens:
    """A prompt as token ids."""

    ids: list[int]


Prompt = str | Tokens | Chat


@dataclass(frozen=True, slots=True)
class GenerationRequest:
    """A request, checked as far as it can be without its model.

    `outputs` are the names of the requested outputs. `flagged` are those that a `return_…` input asked for: they are in
    every response, `finish_reason` as "None" while a choice goes on. `repeats_prompt`: the text begins with the prompt.
    """

    model_name: str
    id: str
    prompt: Prompt
    stream: bool
    sampling: Sampling
    outputs: tuple[str, ...]
    flagged: frozenset[str] = frozenset()
    repeats_prompt: bool = False

    @classmethod
    def read(
        cls,
        request: InferRequest,
        *,
        decoupled: bool = True,
        repeats_prompt: bool = True,
        defaults: Mapping[str, Any] | None = None,
    ) -> "GenerationRequest":
        """Return the generation that a request asks for. What it leaves out is the model's: its `defaults`, if they are
        known, and whether a text without streaming `repeats_prompt`.

        Raises ServingError (INVALID_ARG) that names the tensor or the parameter.
        """
        prompt, parameters = _prompt(request), read_sampling(request)
        stream = bool(inputs.flag(request, "stream") or inputs.flag(request, "streaming"))
        if stream and not decoupled:
            raise invalid("Streaming is only supported in decoupled mode.")
        flagged = frozenset(
            output
            for name, outputs in FLAGGED_OUTPUTS.items()
            if name in request.inputs and inputs.flag(request, name)
            for output in outputs
        )
        return cls(
            request.model_name,
            request.id,
            prompt,
            stream,
            parameters if defaults is None else with_defaults(parameters, defaults),
            _outputs(request, prompt, flagged),
            flagged,
            _repeats(request, prompt, stream, repeats_prompt),
        )

    def wants(self, output: str) -> bool:
        """Return whether an output is requested."""
        return output in self.outputs


def _prompt(request: InferRequest) -> Prompt:
    names = [name for name in PROMPTS if name in request.inputs]
    if len(names) != 1:
        provided = f"not {' and '.join(names)}" if names else "none of them is there"
        raise invalid(f"model '{request.model_name}' takes one of the inputs {', '.join(PROMPTS)}: {provided}")
    if names[0] == INPUT_IDS:
        return Tokens(inputs.token_ids(request, INPUT_IDS) or [])
    if names[0] == TEXT_INPUT:
        return inputs.text(request, TEXT_INPUT) or ""
    return Chat.read(inputs.data(request, MESSAGES) or b"")


def _repeats(request: InferRequest, prompt: Prompt, stream: bool, default: bool) -> bool:
    """Return whether the text begins with the prompt: unless excluded, that of a text without streaming does."""
    excluded = inputs.flag(request, "exclude_input_in_output")
    if excluded is None:
        return default and isinstance(prompt, str) and not stream
    if stream and not excluded:
        raise invalid("When streaming, `exclude_input_in_output` = False is not allowed.")
    return not excluded


def _outputs(request: InferRequest, prompt: Prompt, flagged: frozenset[str]) -> tuple[str, ...]:
    if request.requested_outputs:
        return request.requested_outputs
    plain = (OUTPUT_IDS, "sequence_length") if isinstance(prompt, Tokens) else (TEXT_OUTPUT,)
    return tuple(name for name in OUTPUTS if name in plain or name in flagged)


def read_sampling(request: InferRequest) -> Sampling:
    """Return the JSON tensor's parameters, else the request's own parameters; tensors of their own add to them."""
    text = inputs.data(request, "sampling_parameters")
    plain = {
        name: value
        for tensor, name, read in _PLAIN
        if tensor in request.inputs and (value := read(request, tensor)) is not None
    }
    ends = _ends(request)
    if not plain and not ends:
        if text is not None:
            return sampling.from_json(text)
        if not request.parameters:
            return Sampling()
    own = {name: request.parameters[name] for name in sampling.NAMES if name in request.parameters}
    values: dict[str, Any] = own if text is None else msgspec.to_builtins(sampling.from_json(text), str_keys=True)
    return sampling.from_mapping({**values, **plain, **ends})


def _ends(request: InferRequest) -> dict[str, Any]:
    """Return what `end_id` means: an end in place of the model's own, or with a negative one no end at all."""
    end_id = inputs.integer(request, "end_id")
    if end_id is None:
        return {}
    return {"ignore_eos": True, **({"stop_token_ids": [end_id]} if end_id >= 0 else {})}


def _one(request: InferRequest, name: str) -> None:
    value = inputs.integer(request, name)
    if value != 1:
        raise invalid(f"input '{name}' is {value}, expected 1: beam search is not supported")


_PLAIN: Final[tuple[tuple[str, str, Callable[[InferRequest, str], Any]], ...]] = (
    ("max_tokens", "max_tokens", inputs.integer),
    ("request_output_len", "max_tokens", inputs.integer),
    ("temperature", "temperature", inputs.number),
    ("top_k", "top_k", inputs.integer),
    ("top_p", "top_p", inputs.number),
    ("random_seed", "seed", inputs.integer),
    ("seed", "seed", inputs.integer),
    ("stop_words", "stop", inputs.texts),
    ("bad_words", "bad_words", inputs.texts),
    ("min_length", "min_tokens", inputs.integer),
    ("min_tokens", "min_tokens", inputs.integer),
    ("repetition_penalty", "repetition_penalty", inputs.number),
    ("presence_penalty", "presence_penalty", inputs.number),
    ("frequency_penalty", "frequency_penalty", inputs.number),
    ("num_return_sequences", "n", inputs.integer),
    ("lora_name", "lora_name", inputs.text),
    ("beam_width", "", _one),
)
"""Tensors of their own, the parameters that they are, and how they are read."""
