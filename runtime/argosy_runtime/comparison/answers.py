"""One version's answer to a request as it is held for the comparison: tensors, or a generated text."""

from collections.abc import Mapping
from math import prod
from typing import Final

from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.errors import ServingError
from argosy_runtime.language.deltas import Delta
from argosy_runtime.language.reading import ResponseReader
from argosy_runtime.language.tensors import INPUT_IDS, OUTPUT_IDS, is_language_model
from argosy_runtime.messages import InferResponse
from argosy_runtime.modelconfig.parameters.chat import ChatTensors, chat_tensors
from argosy_runtime.modelconfig.parameters.traffic import OutputTolerance
from argosy_runtime.tensors import Tensor, string_elements

from .differences import Difference, DifferenceKind, OutputComparison
from .responses import Outputs, compare_responses
from .texts import TEXT, GeneratedAnswer, compare_generated

_OVERHEAD: Final = 256
"""Bytes that a held tensor takes in addition to its data, about."""


_STRING: Final = 64
"""Bytes of a string whose length is not known without a look at it, about."""


def size_of(tensor: Tensor) -> int:
    """Return the memory that a tensor takes, about. Strings that are not encoded yet are counted, not measured."""
    strings = tensor.datatype == "BYTES" and tensor.raw is None
    return _OVERHEAD + (_STRING * prod(tensor.shape) if strings else tensor.nbytes)


class AnswerFormat:
    """How a model's answers are compared: as generated texts if it is a language model or a chat pipeline."""

    def __init__(self, config: ModelConfig) -> None:
        self.chat: ChatTensors | None = chat_tensors(config)
        self.is_generated = self.chat is not None or is_language_model(config) or _generates_tokens(config)

    def begin(self) -> "AnswerRecord":
        """Return an answer without responses."""
        return AnswerRecord(self)


class AnswerRecord:
    """The responses of one version. `nbytes`: the memory that they keep."""

    __slots__ = ("_format", "_generated", "_reader", "_responses", "nbytes", "unreadable")

    def __init__(self, of: AnswerFormat) -> None:
        self._format = of
        self._responses: list[Outputs] = []
        self._generated = GeneratedAnswer()
        self._reader = ResponseReader()
        self.nbytes = 0
        self.unreadable = ""

    def add(self, response: InferResponse) -> int:
        """Hold a response without an error. Return by how many bytes `nbytes` grew."""
        if response.is_empty:
            return 0
        outputs = tuple(response.outputs)
        if self._format.is_generated:
            size = self._add_generated(response, outputs)
        else:
            self._responses.append(outputs)
            size = sum(size_of(tensor) for tensor in outputs)
        self.nbytes += size
        return size

    def drop(self) -> None:
        """Release the responses."""
        self._responses.clear()
        self._generated = GeneratedAnswer()
        self.nbytes = 0

    def compare(self, candidate: "AnswerRecord", tolerances: Mapping[str, OutputTolerance]) -> list[OutputComparison]:
        """Compare this answer of the stable version with the candidate's."""
        if not self._format.is_generated:
            return compare_responses(self._responses, candidate._responses, tolerances)
        if candidate.unreadable and not self.unreadable:
            difference = Difference(DifferenceKind.MISSING, detail=candidate.unreadable)
            return [OutputComparison(TEXT, difference)]
        return compare_generated(self._generated, candidate._generated)

    def _add_generated(self, response: InferResponse, outputs: Outputs) -> int:
        chat = self._format.chat
        try:
            deltas = self._reader.read(response) if chat is None else _chat_deltas(chat, outputs)
        except ServingError as error:
            self.unreadable = error.message
            return 0
        for delta in deltas:
            self._generated.add(delta)
        return sum(len(delta.text) + 8 * len(delta.token_ids) + _OVERHEAD for delta in deltas)


def _generates_tokens(config: ModelConfig) -> bool:
    """Return whether a model has the tensors of a language model that knows tokens alone, without a tokenizer."""
    inputs, outputs = ({tensor.name for tensor in tensors} for tensors in (config.input, config.output))
    return {INPUT_IDS, "sampling_parameters"} <= inputs and OUTPUT_IDS in outputs


def _chat_deltas(chat: ChatTensors, outputs: Outputs) -> list[Delta]:
    by_name = {tensor.name: tensor for tensor in outputs}
    text, reason = _strings(by_name.get(chat.text)), _strings(by_name.get(chat.finish_reason))
    return [Delta(0, "".join(text), finish_reason="".join(reason) or None)]


def _strings(tensor: Tensor | None) -> list[str]:
    if tensor is None or tensor.datatype != "BYTES":
        return []
    return [element.decode("utf-8", "replace") for element in string_elements(tensor.array)]
