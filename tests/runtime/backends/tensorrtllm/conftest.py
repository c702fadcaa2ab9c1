"""An engine's and a checkpoint's folder, and the stand-in for TensorRT-LLM that opens them."""

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import tests.builder.tensorrt_llm
from tests import tiny_llama, tiny_tokenizers
from tests.runtime.backends.requests import parameter

from argosy_runtime.backends import tensorrtllm as backend

STANDINS = Path(tests.builder.tensorrt_llm.__path__[0]) / "standins"
WORDS = 64
END = 63
POSITIONS = 128
HIDDEN = 16
LAYERS = 2
GREEDY = {"temperature": 0}
"""What requests leave out."""
Load = Callable[..., Any]


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], list[dict[str, Any]]]]:
    """Install the stand-in. Yield a function that returns the calls of a name."""
    file = tmp_path / "calls"
    monkeypatch.setenv("STANDIN_CALLS", str(file))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    monkeypatch.syspath_prepend(str(STANDINS))

    def made(name: str) -> list[dict[str, Any]]:
        lines = file.read_text().splitlines() if file.exists() else []
        return [call for call in map(json.loads, lines) if call["call"] == name]

    yield made
    for name in [name for name in sys.modules if name.partition(".")[0] in ("tensorrt_llm", "standin")]:
        del sys.modules[name]


def save_tokenizer(folder: Path, template: str = "{{ messages[0]['content'] }}") -> None:
    """Write a tokenizer whose words are w0 … w62, the last is the end."""
    folder.mkdir(parents=True, exist_ok=True)
    words = tiny_tokenizers.words([*(f"w{number}" for number in range(END)), "</s>"], "w0")
    tokenizer = tiny_llama.loaded(words, eos_token="</s>")
    tokenizer.chat_template = template
    tokenizer.save_pretrained(folder)


def write_engine(folder: Path, *, tokenizer: bool = True, version: str = "1.2.1", **build: Any) -> None:
    """Write what trtllm-build leaves."""
    mapping = {"world_size": 1, "tp_size": 1, "pp_size": 1}
    pretrained = {"vocab_size": WORDS, "max_position_embeddings": POSITIONS, "mapping": mapping}
    pretrained |= {"hidden_size": HIDDEN, "num_hidden_layers": LAYERS}
    build_config = {"max_seq_len": POSITIONS, "max_batch_size": 8, "plugin_config": {"lora_plugin": None}, **build}
    config = {"version": version, "pretrained_config": pretrained, "build_config": build_config}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "generation_config.json").write_text(json.dumps(GREEDY))
    (folder / "rank0.engine").write_bytes(b"engine")
    if tokenizer:
        save_tokenizer(folder / "tokenizer")


def write_checkpoint(folder: Path, arguments: str = "", *, tokenizer: bool = True, ends: Any = END) -> None:
    """Write a checkpoint of Hugging Face's form."""
    if tokenizer:
        save_tokenizer(folder)
    config = {"architectures": ["LlamaForCausalLM"], "vocab_size": WORDS, "max_position_embeddings": POSITIONS}
    config |= {"hidden_size": HIDDEN, "num_hidden_layers": LAYERS}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": ends, **GREEDY}))
    if arguments:
        (folder / "llm_args.yaml").write_text(arguments)


def pbtxt(*, decoupled: bool = True, **parameters: str) -> str:
    """Return a configuration with these parameters."""
    settings = "".join(parameter(key, value.replace('"', '\\"')) for key, value in parameters.items())
    policy = f"model_transaction_policy {{ decoupled: {str(decoupled).lower()} }}"
    return f'name: "lm" backend: "tensorrtllm" {policy} {settings}'


@pytest.fixture
def load(model_folder: Callable[[str], Any], host: Any, calls: Callable[[str], list[dict[str, Any]]]) -> Iterator[Load]:
    """Yield a function that opens a model whose files `write` writes."""
    instances = []

    def loaded(
        write: Callable[..., None] = write_engine, config: str = pbtxt(), kind: str = "KIND_CPU", **files: Any
    ) -> Any:
        folder = model_folder(config)
        write(folder.version_dir, **files)
        instances.append(backend.load(folder.spec(kind=kind), host))
        return instances[-1]

    yield loaded
    for instance in instances:
        instance.close()
