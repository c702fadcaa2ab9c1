"""The generation that a request asks for, read from its tensors. Imports no torch."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from argosy_runtime.errors import invalid
from argosy_runtime.messages import InferRequest

TEXT_DEFAULT_TOKENS = 16
MIN_TEMPERATURE = 1e-5
"""What sampling divides by at least. The library divides in float32, which ends at 3.4e38: with a temperature of 1e-40
logits become infinite, their softmax is not a number, and the batch ends for every request. With this one, logits up to
1e33 stay finite, and tokens whose logits differ by 0.001 are already e^100 apart: in effect the
likeliest token."""
_FLOAT32_MAX = float(np.finfo(np.float32).max)
_TEXT_KEYS = ("max_tokens", "temperature", "top_k", "top_p", "seed", "ignore_eos", "stop_token_ids", "n")


@dataclass(frozen=True, slots=True)
class Sampling:
    """The choice of the next token: the likeliest where all fields are None."""

    temperature: float | None = None
    top_k: int | None = None
    top_p: float | None = None
    seed: int | None = None

    @property
    def is_greedy(self) -> bool:
        """True if no token is drawn at random."""
        if self.temperature is not None and self.temperature == 0:
            return True
        samples = self.temperature is not None or bool(self.top_k) or self.top_p is not None
        return not samples or self.top_k == 1


@dataclass(frozen=True, slots=True)
class Generation:
    """One request. `end_ids` None means the model's own, empty means none. `prompt` is set for text requests."""

    input_ids: list[int]
    max_new_tokens: int
    sampling: Sampling
    end_ids: tuple[int, ...] | None
    streaming: bool
    prompt: str | None = None
    repeats_prompt: bool = False


def from_ids(request: InferRequest) -> Generation:
    """Return the generation of `input_ids` and the inputs that go with it.

    Raises ServingError that names the tensor.
    """
    end_id = _scalar(request, "end_id", int)
    return Generation(
        input_ids=[int(value) for value in _array(request, "input_ids").reshape(-1).tolist()],
        max_new_tokens=_required(request, "request_output_len"),
        sampling=_checked(
            Sampling(
                _scalar(request, "temperature", float),
                _scalar(request, "top_k", int),
                _scalar(request, "top_p", float),
                _scalar(request, "random_seed", int),
            )
        ),
        end_ids=None if end_id is None else tuple(value for value in (end_id,) if value >= 0),
        streaming=bool(_scalar(request, "streaming", bool)),
    )


def from_text(request: InferRequest, encode: Callable[[str], list[int]]) -> Generation:
    """Return the generation of `text_input` and the inputs that go with it, tokenized by `encode`.

    Raises ServingError.
    """
    prompt = _text(request, "text_input")
    parameters = _sampling_parameters(request)
    streaming = bool(_scalar(request, "stream", bool))
    excluded = _scalar(request, "exclude_input_in_output", bool)
    repeats = not streaming if excluded is None else not excluded
    if repeats and streaming:
        raise invalid("When streaming, `exclude_input_in_output` = False is not allowed.")
    if _number(parameters, "n", int) not in (None, 1):
        raise invalid("sampling_parameters: 'n' must be 1; send the request again for another answer")
    top_k = _number(parameters, "top_k", int)
    return Generation(
        input_ids=encode(prompt),
        max_new_tokens=_or(_number(parameters, "max_tokens", int), TEXT_DEFAULT_TOKENS),
        sampling=_checked(
            Sampling(
                _number(parameters, "temperature", float),
                None if top_k == -1 else top_k,
                _number(parameters, "top_p", float),
                _number(parameters, "seed", int),
            )
        ),
        end_ids=_end_ids(parameters),
        streaming=streaming,
        prompt=prompt,
        repeats_prompt=repeats,
    )


def _checked(sampling: Sampling) -> Sampling:
    if sampling.temperature is not None and not 0 <= sampling.temperature <= _FLOAT32_MAX:
        raise invalid(f"temperature is {sampling.temperature:g}, expected 0 or more, and finite in float32")
    if sampling.top_k is not None and sampling.top_k < 0:
        raise invalid(f"top_k is {sampling.top_k}, expected 0 (off) or more")
    if sampling.top_p is not None and not 0 < sampling.top_p <= 1:
        raise invalid(f"top_p is {sampling.top_p:g}, expected more than 0 and at most 1")
    return sampling


def _array(request: InferRequest, name: str) -> Any:
    if name not in request.inputs:
        raise invalid(f"input '{name}' is missing for model '{request.model_name}'")
    return request.inputs[name].array


def _scalar(request: InferRequest, name: str, kind: Callable[[Any], Any]) -> Any:
    if name not in request.inputs:
        return None
    array = request.inputs[name].array
    if array.size != 1:
        raise invalid(f"input '{name}' has shape {list(array.shape)}, expected one element")
    return kind(np.asarray(array).reshape(-1)[0])


def _required(request: InferRequest, name: str) -> int:
    _array(request, name)
    value = int(_scalar(request, name, int))
    if value < 0:
        raise invalid(f"input '{name}' is {value}, expected 0 or more")
    return value


def _text(request: InferRequest, name: str) -> str:
    value: bytes = _scalar(request, name, bytes)
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError as error:
        raise invalid(f"input '{name}' is not UTF-8: {error}") from error


def _sampling_parameters(request: InferRequest) -> Mapping[str, Any]:
    """Return the JSON tensor; without one, the request's own parameters of these names."""
    if "sampling_parameters" not in request.inputs:
        return {name: request.parameters[name] for name in _TEXT_KEYS if name in request.parameters}
    try:
        parameters = json.loads(_text(request, "sampling_parameters"))
    except ValueError as error:
        raise invalid(f"input 'sampling_parameters' is not JSON: {error}") from error
    if not isinstance(parameters, dict):
        raise invalid("input 'sampling_parameters' must be a JSON object")
    for name in parameters:
        if name not in _TEXT_KEYS:
            raise invalid(f"sampling_parameters: '{name}' is not supported, only {', '.join(_TEXT_KEYS)}")
    return parameters


def _number(parameters: Mapping[str, Any], name: str, kind: Callable[[Any], Any]) -> Any:
    if parameters.get(name) is None:
        return None
    try:
        return kind(parameters[name])
    except (TypeError, ValueError):
        raise invalid(f"sampling_parameters: '{name}' is {parameters[name]!r}, expected a number") from None
    except OverflowError:
        raise invalid(f"sampling_parameters: '{name}' is {parameters[name]!r}, expected a number in range") from None


def _end_ids(parameters: Mapping[str, Any]) -> tuple[int, ...] | None:
    ids = parameters.get("stop_token_ids")
    if ids is not None and not (isinstance(ids, list) and all(isinstance(value, int) for value in ids)):
        raise invalid("sampling_parameters: 'stop_token_ids' must be a list of token ids")
    if str(parameters.get("ignore_eos", False)).lower() in ("true", "1"):
        return tuple(ids or ())
    return tuple(ids) if ids else None


def _or(value: int | None, default: int) -> int:
    if value is not None and value < 0:
        raise invalid(f"sampling_parameters: 'max_tokens' is {value}, expected 0 or more")
    return default if value is None else value
