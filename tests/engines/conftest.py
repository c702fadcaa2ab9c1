"""One server with a tiny Llama on vLLM for the CPU, for all tests of this folder: an engine takes long to start."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.engines import repository
from tests.peers.fixtures import vllm_environment
from tests.peers.server import Server

__all__ = ["vllm_environment"]

CONFIG = """
backend: "vllm"
parameters { key: "dtype" value { string_value: "float32" } }
parameters { key: "enforce_eager" value { string_value: "true" } }
parameters { key: "max_num_seqs" value { string_value: "8" } }
parameters { key: "scheduling_policy" value { string_value: "priority" } }
"""


@pytest.fixture(scope="session")
def vllm_repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a repository with the model `llm`, its adapter `other`, and a model `broken` whose weights are cut off."""
    root = tmp_path_factory.mktemp("models")
    version = repository.write(root, CONFIG, max_position_embeddings=repository.POSITIONS)
    broken = root / "broken/1"
    broken.mkdir(parents=True)
    (broken / "config.json").write_bytes((version / "config.json").read_bytes())
    weights = (version / "model.safetensors").read_bytes()
    (broken / "model.safetensors").write_bytes(weights[: len(weights) // 2])
    (root / "broken/config.pbtxt").write_text(CONFIG)
    return root


@pytest.fixture(scope="session")
def vllm_server(
    end_early: Callable[[Callable[[], None]], None],
    vllm_environment: Path,
    vllm_repository: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Server]:
    """Yield a server with the model `llm` loaded."""
    log = tmp_path_factory.mktemp("vllm") / "server.log"
    variables = {"VLLM_CPU_KVCACHE_SPACE": "1", "OMP_NUM_THREADS": "1"}
    server = repository.serve(vllm_repository, "vllm", vllm_environment, log, **variables)
    end_early(server.stop)
    yield server
    server.stop()
