"""Models that only Triton serves yet (`tests/models_of_triton`), and the cases that need one of them.

When Argosy serves them they move to `tests/models`, and this module goes.
"""

from collections.abc import Iterable
from typing import Any

import pytest
from tests.differential.oracle import NOT_YET, models_in

REASON = "sequence_batching is not served yet"
MODELS = frozenset(models_in(NOT_YET))


def skip_if_pending(side: str, words: Iterable[object]) -> None:
    """End the running test on Argosy's side where such a model is among the words of its requests."""
    if side == "argosy" and not MODELS.isdisjoint(map(str, words)):
        pytest.skip(REASON)


def without_pending(answer: Any) -> Any:
    """Return a repository's index without these models, of which Argosy's repository has none."""
    if isinstance(answer, list):
        return [row for row in answer if not (isinstance(row, dict) and "state" in row and row["name"] in MODELS)]
    return answer
