"""A repository with the language model `llm`, a tiny Llama with an adapter, and a server of it."""

import json
from pathlib import Path
from typing import Any

from tests import tiny_llama
from tests.peers.argosy import argosy
from tests.peers.server import Server

START_S = 600.0
POSITIONS = 4096
"""The context length of a model whose streams go on for seconds, so that a test can interrupt them."""


def write(root: Path, config: str, **llama: Any) -> Path:
    """Write the model `llm`, as `tiny_llama.save` makes it, and its adapter `other`; return its version's folder."""
    version = root / "llm/1"
    tiny_llama.save(version, **llama)
    tiny_llama.save_adapter(version / "other", version)
    (version / "multi_lora.json").write_text(json.dumps({"other": "other"}))
    (root / "llm/config.pbtxt").write_text(config)
    return version


def serve(root: Path, backend: str, environment: Path, log: Path, *models: str, **variables: str) -> Server:
    """Start a server that has loaded `llm` and these models by an engine environment; nothing is downloaded."""
    return argosy(
        root,
        "--model-control-mode=explicit",
        *(f"--load-model={name}" for name in ("llm", *models)),
        f"--backend-config={backend},environment={environment}",
        log=log,
        timeout_s=START_S,
        environment={"HF_HUB_OFFLINE": "1", **variables},
    )
