"""TensorRT-LLM on a GPU: a checkpoint of Hugging Face's form, by OpenAI's API; never run so far."""

from collections.abc import Callable, Iterator
from pathlib import Path

import openai
import pytest
import torch
from tests.engines import repository
from tests.engines.engine_requests import GREEDY, chat_twice, gauge, generate, stream
from tests.peers.server import Server
from tests.waiting import wait

pytestmark = pytest.mark.timeout(1800)  # the first test installs the environment and starts the engine

CONFIG = """
backend: "tensorrtllm"
instance_group [ { kind: KIND_GPU gpus: [ 0 ] } ]
parameters { key: "kv_cache_memory" value { string_value: "2GiB" } }
"""


@pytest.fixture(scope="module")
def server(engine_environment: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Yield a server with the model `llm`, a checkpoint that TensorRT-LLM's own PyTorch backend runs."""
    environment = engine_environment("tensorrtllm")
    root = tmp_path_factory.mktemp("tensorrtllm")
    repository.write(root / "models", CONFIG, dtype=torch.bfloat16)
    started = repository.serve(root / "models", "tensorrtllm", environment, root / "server.log")
    yield started
    started.stop()


def test_a_streamed_chat_is_the_answer_in_pieces(client: openai.OpenAI) -> None:
    answer, pieces = chat_twice(client, "llm")
    assert "".join(pieces) == answer
    assert len(pieces) > 2


def test_stop_strings_end_an_answer(server: Server) -> None:
    text = generate(server, text_input="Hello")["text_output"]
    outputs = ["text_output", "finish_reason"]
    answer = generate(server, {**GREEDY, "stop": text[1]}, text_input="Hello", outputs=outputs)
    assert (answer["text_output"], answer["finish_reason"]) == (text[: text.index(text[1])], "stop")


def test_structured_outputs_hold(server: Server) -> None:
    guided = {"temperature": 1, "max_tokens": 8, "structured_outputs": {"regex": "(yes|no)"}}
    assert generate(server, guided, text_input="Well?")["text_output"] in ("yes", "no")


def test_a_client_that_goes_ends_its_request(server: Server) -> None:
    with stream(server, "Hello", {"max_tokens": 480, "temperature": 0, "ignore_eos": True}) as events:
        next(events)
    wait(lambda: gauge(server, "vllm:num_requests_running") == 0, 0.1)
    assert generate(server, text_input="Hello")["text_output"]
