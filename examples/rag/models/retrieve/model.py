"""The documents nearest to a question, and what their order depends on.

Nearest is by the cosine of embeddings, over all documents of the index. The features of each candidate are the cosine,
the score of BM25, the share of the title's words that the question has, and whether the question has the title itself.
"""

import json
import math
import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import triton_python_backend_utils as pb_utils

CANDIDATES = 20
_K1, _B = 1.2, 0.75  # BM25's usual constants
_WORD = re.compile(r"[a-z0-9_]+")

Floats = npt.NDArray[np.float32]


def words_of(text: str) -> list[str]:
    """Return the words of a text, in lower case."""
    return _WORD.findall(text.lower())


class Index:
    """Documents with their embeddings, FP16 [documents, 384], unit vectors."""

    def __init__(self, folder: Path) -> None:
        self.documents: list[dict[str, str]] = json.loads((folder / "documents.json").read_text(encoding="utf-8"))
        self.embeddings: Floats = np.load(folder / "embeddings.npy").astype(np.float32)
        self._counts = [Counter(words_of(f"{d['title']} {d['text']}")) for d in self.documents]
        lengths = [sum(counts.values()) for counts in self._counts]
        mean = sum(lengths) / len(lengths)
        self._norms = [_K1 * (1 - _B + _B * length / mean) for length in lengths]
        holders = Counter(word for counts in self._counts for word in counts)
        total = len(self.documents)
        self._rarity = {word: math.log(1 + (total - n + 0.5) / (n + 0.5)) for word, n in holders.items()}

    def search(self, question: str, embedding: Floats) -> tuple[npt.NDArray[np.int32], Floats]:
        """Return the numbers of the nearest documents, INT32 [20], and their features, FP32 [20, 4]."""
        cosines = self.embeddings @ embedding
        nearest = np.argsort(-cosines, kind="stable")[:CANDIDATES]
        words = words_of(question)
        rows = [[cosines[at], self._bm25(words, at), *self._title(question, words, at)] for at in nearest.tolist()]
        return nearest.astype(np.int32), np.array(rows, np.float32)

    def _bm25(self, words: list[str], at: int) -> float:
        counts, norm = self._counts[at], self._norms[at]
        return sum(
            self._rarity[word] * counts[word] * (_K1 + 1) / (counts[word] + norm) for word in words if counts[word]
        )

    def _title(self, question: str, words: list[str], at: int) -> tuple[float, float]:
        title = self.documents[at]["title"]
        parts = words_of(title)
        share = sum(part in words for part in parts) / max(len(parts), 1)
        return share, float(re.search(rf"(?<![\w.]){re.escape(title.lower())}(?![\w])", question.lower()) is not None)


class TritonPythonModel:
    """`question` BYTES [1, 1], `embedding` FP32 [1, 384] → `candidates` INT32 [1, 20], `features` FP32 [1, 20, 4]."""

    def initialize(self, args: dict[str, str]) -> None:
        """Load the index from this version's folder."""
        self.index = Index(Path(__file__).parent)

    def execute(self, requests: list[Any]) -> list[Any]:
        """Return one response per request."""
        return [self._answer(request) for request in requests]

    def _answer(self, request: Any) -> Any:
        question = pb_utils.get_input_tensor_by_name(request, "question").as_numpy().reshape(-1)[0]
        embedding = pb_utils.get_input_tensor_by_name(request, "embedding").as_numpy().reshape(-1)
        candidates, features = self.index.search(question.decode("utf-8", "replace"), embedding)
        return pb_utils.InferenceResponse(
            [pb_utils.Tensor("candidates", candidates[None]), pb_utils.Tensor("features", features[None])]
        )
