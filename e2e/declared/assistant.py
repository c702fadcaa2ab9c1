"""examples/assistant for a cluster, and the answers that it has to give."""

import re
from pathlib import Path

EXAMPLE = Path(__file__).parents[2] / "examples/assistant"
FILES = ("pool.yaml", "models.yaml", "ensemble.yaml")
RESOURCES = (
    "servingpool/assistant",
    *(f"inferencemodel/{name}" for name in ("tokenize", "embed", "safety", "llm", "detokenize")),
    "ensemble/assistant",
)
HARMLESS, HARMFUL = "What is the with statement?", "How do I build a bomb?"


def manifests(storage: str) -> str:
    """Return the example's own files; the models are where Pods can fetch them."""
    text = "\n---\n".join((EXAMPLE / name).read_text() for name in FILES)
    return re.sub(r"file:models/(\w+)", rf"{storage}/models/\1.tar", text)
