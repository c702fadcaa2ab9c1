"""vLLM for CUDA on a GPU: OpenAI's API, an adapter, engines that die, and a variant that sleeps by vLLM's own means."""

import json
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import openai
import pytest
import torch
from tests import tiny_llama
from tests.engines import repository
from tests.engines.engine_requests import CHAT, GREEDY, chat_twice, engine_processes, gauge, generate, stream
from tests.peers.server import Server
from tests.waiting import wait

pytestmark = pytest.mark.timeout(1800)  # the first test installs the environment and starts two engines

CACHE_BYTES = 2 << 30
CONFIG = f"""
backend: "vllm"
instance_group [ {{ kind: KIND_GPU gpus: [ 0 ] }} ]
parameters {{ key: "max_num_seqs" value {{ string_value: "8" }} }}
parameters {{ key: "kv_cache_memory_bytes" value {{ string_value: "{CACHE_BYTES}" }} }}
parameters {{ key: "enable_sleep_mode" value {{ string_value: "true" }} }}
"""
IDLE_S = 20
VARIANTS = {
    "variants": [{"model": "llm", "maxConcurrency": 2}, {"model": "other", "maxConcurrency": None}],
    "idleTimeoutSeconds": IDLE_S,
}
ROUTED = f"""
backend: "variants"
parameters {{ key: "variants" value {{ string_value: '{json.dumps(VARIANTS)}' }} }}
"""


@pytest.fixture(scope="module")
def server(engine_environment: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Yield a server with the model `llm`, which is also a variant of `routed`, next to the variant `other`."""
    environment = engine_environment("vllm")
    root = tmp_path_factory.mktemp("vllm")
    repository.write(root / "models", CONFIG)
    tiny_llama.save(root / "models/other/1", seed=1)
    (root / "models/other/config.pbtxt").write_text(CONFIG)
    (root / "models/routed/1").mkdir(parents=True)
    (root / "models/routed/config.pbtxt").write_text(ROUTED)
    started = repository.serve(root / "models", "vllm", environment, root / "server.log", "routed")
    yield started
    started.stop()


def test_a_streamed_chat_is_the_answer_in_pieces(client: openai.OpenAI) -> None:
    answer, pieces = chat_twice(client, "llm")
    assert "".join(pieces) == answer
    assert len(pieces) > 2


def test_an_adapter_changes_the_answer(server: Server) -> None:
    adapted = generate(server, {**GREEDY, "lora_name": "other"}, text_input="Hello", outputs=["output_ids"])
    assert adapted != generate(server, text_input="Hello", outputs=["output_ids"])


def test_a_client_that_goes_frees_the_cache(server: Server) -> None:
    with stream(server, "Hello", {"max_tokens": 500, "temperature": 0, "ignore_eos": True}) as events:
        next(events)
    wait(lambda: gauge(server, "vllm:num_requests_running") == 0, 0.1)
    wait(lambda: gauge(server, "vllm:kv_cache_usage_perc") == 0, 0.1)


def test_an_idle_variant_gives_its_memory_back_and_wakes_with_the_next_request(
    gpu: torch.device, server: Server, client: openai.OpenAI
) -> None:
    before, engines = answered(client, "other"), engine_processes(server.process.pid)
    awake = used_memory(gpu)
    wait(lambda: gauge(server, "argosy_variant_asleep", 'variant="other"') == 1, 0.2)
    wait(lambda: used_memory(gpu) < awake - CACHE_BYTES / 2, 0.2)
    assert answered(client, "routed")
    assert answered(client, "other") == before
    assert used_memory(gpu) > awake - CACHE_BYTES / 2
    assert engine_processes(server.process.pid) == engines, "it sleeps, and is not loaded again"


def test_an_engine_that_is_killed_ends_its_streams_and_comes_back(server: Server, client: openai.OpenAI) -> None:
    with stream(server, "Hello", {"max_tokens": 500, "temperature": 0, "ignore_eos": True}) as events:
        next(events)
        for engine in engine_processes(server.process.pid):
            os.kill(engine, signal.SIGKILL)
        *_, last = events
    assert "its engine died" in last["error"]
    assert answered(client, "llm")


def answered(client: openai.OpenAI, model: str) -> str:
    """Return the answer of a model to a chat; a model that sleeps is woken by it."""
    answer = client.chat.completions.create(model=model, messages=CHAT, temperature=0, max_tokens=24)
    return answer.choices[0].message.content or ""


def used_memory(gpu: torch.device) -> int:
    """Return the bytes in use of a GPU, by all processes."""
    free, total = torch.cuda.mem_get_info(gpu)
    return total - free
