"""Requests whose answers are drawn at random, so that two answers tell nothing of the versions."""

import msgspec

from argosy_runtime.errors import ServingError
from argosy_runtime.language.requests import read_sampling
from argosy_runtime.language.sampling import Sampling, from_json
from argosy_runtime.messages import InferRequest
from argosy_runtime.tensors import string_elements

from .answers import AnswerFormat


def is_sampled(request: InferRequest, answers: AnswerFormat) -> bool:
    """Return whether a generated answer may be another one each time: without a seed, and not with temperature 0.

    A temperature that the request leaves out is the model's, and may be any.
    """
    if not answers.is_generated:
        return False
    sampling = _sampling(request, answers)
    return sampling is None or not (sampling.is_greedy or sampling.seed is not None)


def _sampling(request: InferRequest, answers: AnswerFormat) -> Sampling | None:
    """Return the sampling parameters of a request; None without any that can be read."""
    try:
        if answers.chat is None:
            return read_sampling(request)
        tensor = request.inputs.get(answers.chat.sampling_parameters)
        return None if tensor is None else from_json(string_elements(tensor.array)[0])
    except (ServingError, IndexError, ValueError, OverflowError, msgspec.MsgspecError):
        return None
