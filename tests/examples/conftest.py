"""The assistant's stages, each loaded alone as its backend would load it, with no server."""

import importlib.util
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import ModuleType

import numpy as np
import onnxruntime
import pytest
import torch
import transformers
from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy.api import InferenceModel
from argosy.local.manifests.reading import read_manifests
from argosy.render.config.model_config import Devices, model_config
from argosy_runtime.backends import resolve
from argosy_runtime.backends.contract import InstanceSpec
from argosy_runtime.messages import Array, InferRequest, InferResponse, Tensor

ASSISTANT = Path(__file__).parents[2] / "examples" / "assistant"
MODELS = ASSISTANT / "models"
DATATYPES = {"b": "BOOL", "i4": "INT32", "i8": "INT64", "f4": "FP32", "O": "BYTES"}

Stage = Callable[..., dict[str, Array]]


class Collector:
    """A responder that keeps the responses."""

    def __init__(self) -> None:
        self.responses: list[InferResponse] = []

    def send(self, index: int, response: InferResponse, wait: bool = True) -> None:
        assert index == 0
        self.responses.append(response)

    def is_cancelled(self, index: int) -> bool:
        return False


def import_file(path: Path) -> ModuleType:
    """Return the module in `path`, under a name of its own."""
    name = f"assistant_{path.parent.name}_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _config(name: str) -> ModelConfig:
    (model,) = [candidate for candidate in read_manifests(ASSISTANT).resources if candidate.name == name]
    assert isinstance(model, InferenceModel)
    config = model_config(model, Devices(), [1])
    config.parameters["ISOLATION"].string_value = "thread"
    return config


def _python_stage(name: str) -> Iterator[Stage]:
    spec = InstanceSpec(_config(name), 1, MODELS / name, MODELS / name, f"{name}_0", "KIND_CPU", 0)
    instance = resolve("python").load(spec, host=None)  # type: ignore[arg-type]  # no stage calls the server

    def run(**arrays: Array) -> dict[str, Array]:
        tensors = {key: Tensor(key, _datatype(array), array) for key, array in arrays.items()}
        collector = Collector()
        instance.execute([InferRequest(name, tensors)], collector)
        (response,) = collector.responses
        if response.error is not None:
            raise response.error
        return {tensor.name: tensor.array for tensor in response.outputs}

    yield run
    instance.close()


def _datatype(array: Array) -> str:
    kind = array.dtype.str[1:]
    return DATATYPES[kind if kind in DATATYPES else kind[0]]


@pytest.fixture(scope="session", autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def tokenize() -> Iterator[Stage]:
    yield from _python_stage("tokenize")


@pytest.fixture(scope="session")
def detokenize() -> Iterator[Stage]:
    yield from _python_stage("detokenize")


@pytest.fixture(scope="session")
def embed_stage() -> ModuleType:
    return import_file(MODELS / "embed" / "model.py")


@pytest.fixture(scope="session")
def embedder(embed_stage: ModuleType) -> torch.nn.Module:
    return embed_stage.SentenceEmbedder()


@pytest.fixture(scope="session")
def corpus() -> ModuleType:
    return import_file(ASSISTANT / "corpus.py")


@pytest.fixture(scope="session")
def train_safety() -> ModuleType:
    return import_file(ASSISTANT / "train_safety.py")


@pytest.fixture(scope="session")
def embed(tokenize: Stage, embedder: torch.nn.Module) -> Callable[[Sequence[str]], Array]:
    """Return a function of prompts → FP32 [prompts, 384], through the tokenize stage."""

    def run(prompts: Sequence[str]) -> Array:
        stages = [tokenize(prompt=np.array([[p.encode()]], dtype=np.object_)) for p in prompts]
        ids = torch.from_numpy(np.concatenate([s["embed_ids"] for s in stages]))
        mask = torch.from_numpy(np.concatenate([s["embed_mask"] for s in stages]))
        with torch.inference_mode():
            return embedder(ids, mask).numpy()

    return run


@pytest.fixture(scope="session")
def safety() -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(MODELS / "safety" / "model.onnx", options, providers=["CPUExecutionProvider"])


@pytest.fixture(scope="session")
def llm() -> transformers.PreTrainedModel:
    return transformers.AutoModelForCausalLM.from_pretrained(MODELS / "llm", local_files_only=True)
