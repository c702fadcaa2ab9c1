"""The prompt of the language model, from the documents that answer the question best.

With the parameter `prompt` as `title` the model is asked for the best document by its title: the assistant's model
knows its documents by heart and is too small to read. With `passages` the prompt has the texts of the best documents
and the question, for a model that reads.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import triton_python_backend_utils as pb_utils

SOURCES = 3
LEAST_RELEVANCE = 0.5
DEFAULT_TOKENS = 60
MOST_TOKENS = 128
INSTRUCTIONS = "Answer the question in one or two sentences, from these documents only."


class TritonPythonModel:
    """`question` BYTES [1, 1], `candidates` INT32 [1, 20], `relevance` FP32 [1, 20], optional `max_tokens` INT32 [1, 1]
    and `streaming` BOOL [1, 1] → `messages`, `sampling_parameters`, `sources` BYTES [1, 1], `stream`, `reasons` BOOL
    [1, 1].
    """

    def initialize(self, args: dict[str, str]) -> None:
        """Load the documents from this version's folder."""
        self.documents = json.loads((Path(__file__).parent / "documents.json").read_text(encoding="utf-8"))
        parameters = json.loads(args["model_config"]).get("parameters", {})
        self.prompt = parameters.get("prompt", {}).get("string_value", "title")
        if self.prompt not in ("title", "passages"):
            raise ValueError(f"parameter 'prompt' is '{self.prompt}', expected title or passages")

    def execute(self, requests: list[Any]) -> list[Any]:
        """Return one response per request."""
        return [self._answer(request) for request in requests]

    def _answer(self, request: Any) -> Any:
        question = _input(request, "question").reshape(-1)[0].decode("utf-8", "replace")
        candidates = _input(request, "candidates").reshape(-1)
        relevance = _input(request, "relevance").reshape(-1)
        order = [at for at in np.argsort(-relevance, kind="stable") if relevance[at] >= LEAST_RELEVANCE][:SOURCES]
        sources = [{**self.documents[int(candidates[at])], "relevance": round(float(relevance[at]), 3)} for at in order]
        # Without a document the model is to write nothing.
        tokens = min(_scalar(request, "max_tokens", DEFAULT_TOKENS), MOST_TOKENS) if sources else 0
        sampling = {"max_tokens": max(tokens, 0), "temperature": 0}
        return pb_utils.InferenceResponse(
            [
                _text("messages", {"messages": self._messages(question, sources)}),
                _text("sampling_parameters", sampling),
                _text("sources", sources),
                pb_utils.Tensor("stream", np.array([[bool(_scalar(request, "streaming", False))]])),
                pb_utils.Tensor("reasons", np.array([[True]])),
            ]
        )

    def _messages(self, question: str, sources: list[dict[str, Any]]) -> list[dict[str, str]]:
        if self.prompt == "title":
            about = sources[0]["title"] if sources else question
            return [{"role": "user", "content": f"What is {about}?"}]
        passages = "\n".join(f"[{at}] {source['title']}: {source['text']}" for at, source in enumerate(sources, 1))
        return [{"role": "user", "content": f"{INSTRUCTIONS}\n\n{passages}\n\nQuestion: {question}"}]


def _input(request: Any, name: str) -> Any:
    return pb_utils.get_input_tensor_by_name(request, name).as_numpy()


def _scalar(request: Any, name: str, default: int) -> int:
    tensor = pb_utils.get_input_tensor_by_name(request, name)
    return default if tensor is None else int(tensor.as_numpy().reshape(-1)[0])


def _text(name: str, value: Any) -> Any:
    return pb_utils.Tensor(name, np.array([[json.dumps(value).encode()]], dtype=np.object_))
