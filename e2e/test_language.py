"""A language model on vLLM: declared, Ready, asked over OpenAI's API, measured, scaled and drained under streams.

The tests build on one another, in their order.
"""

import json
from typing import Any

import pytest

from e2e.asking.client import Answer, Client
from e2e.asking.namespace import Namespace
from e2e.declared.resources import language_model, pool
from e2e.deployed import engines

pytestmark = pytest.mark.timeout(1200)

MODEL, POOL = "inferencemodel/chat", "servingpool/language"
START_S = 300.0
"""How long an engine may take to start, on cores that others use too."""
SERVING = {"first": "Serving", "second": "Serving"}
ANSWER = 'The "with" statement is used to wrap the execution of a block'


@pytest.fixture(scope="module", autouse=True)
def served(namespace: Namespace, storage: str) -> None:
    """Declare a pool whose servers have vLLM, and a model."""
    template = engines.pod_template(engines.prepare(), OMP_NUM_THREADS="1", VLLM_CPU_KVCACHE_SPACE="1")
    runtime = {"name": "argosy", "podTemplate": template}
    adapters = [{"name": "first", "storageUri": f"{storage}/models/adapter.tar", "rank": 8}]
    scaled = {"slo": {"timeToFirstToken": {"p95": "50ms"}}, "maxReplicas": 2, "adapters": adapters}
    model = language_model("chat", "language", f"{storage}/models/llm.tar", **scaled)
    namespace.apply(pool("language", runtime=runtime), model)
    namespace.ready(MODEL, timeout_s=START_S)


def chat(client: Client, **fields: Any) -> Answer:
    """Return the answer to a question that the model knows by heart."""
    messages = [{"role": "user", "content": "What is the with statement?"}]
    body = {"model": "chat", "messages": messages, "max_tokens": 60, "temperature": 0, **fields}
    return client.get(f"{client.openai(MODEL)}/chat/completions", json.dumps(body))


def test_it_answers_chats_through_its_service(client: Client) -> None:
    answer = chat(client)
    assert answer.status == 200, answer
    (choice,) = answer.json()["choices"]
    assert choice["message"]["content"].startswith(ANSWER)
    assert answer.json()["usage"]["completion_tokens"] > 10


def test_an_error_is_one_of_openais(client: Client) -> None:
    answer = chat(client, max_tokens=100_000)
    assert (answer.status, answer.json()["error"]["type"]) == (400, "invalid_request_error")


def test_an_adapter_is_added_while_others_stream(namespace: Namespace, client: Client, storage: str) -> None:
    with client.streams(MODEL, "chat", seconds=300, workers=2) as streams:
        base, first = (_text(chat(client, model=name)) for name in ("chat", "first"))
        assert (base.startswith(ANSWER), first.startswith(ANSWER)) == (True, False)
        added = {"name": "second", "storageUri": f"{storage}/models/adapter.tar?second", "rank": 8}
        spec = {"adapters": [*namespace.read(MODEL)["spec"]["adapters"], added]}
        namespace("patch", MODEL, "--type=merge", "-p", json.dumps({"spec": spec}))
        namespace.until("the adapter", lambda: chat(client, model="second").status == 200)
        assert _text(chat(client, model="second")) == first
        namespace.until("the adapter in the status", lambda: _adapters(namespace) == SERVING)
    assert streams.failed == []


def test_under_streams_it_is_measured_scaled_and_drained(namespace: Namespace, client: Client) -> None:
    with client.streams(MODEL, "chat", seconds=900, workers=12) as streams:
        namespace.until("a second replica", lambda: _replicas(namespace) == 2, START_S)
        assert namespace.status(MODEL)["scaling"]["replicas"] == 2
        namespace.until("tokens per second", lambda: _tokens_per_second(namespace) > 0)
        assert "TOKENS/S" in namespace("get", MODEL).upper()
        namespace("patch", MODEL, "--type=merge", "-p", json.dumps({"spec": {"replicas": 1}}))
        namespace.until("one server", lambda: len(namespace.server_pods("language")) == 1, START_S)
    assert streams.sent > 12
    assert streams.failed == []


def _text(answer: Answer) -> str:
    assert answer.status == 200, answer
    return str(answer.json()["choices"][0]["message"]["content"])


def _adapters(namespace: Namespace) -> dict[str, str]:
    """Return the states of adapters by name."""
    return {adapter["name"]: adapter["state"] for adapter in namespace.status(MODEL).get("adapters", ())}


def _replicas(namespace: Namespace) -> int:
    return int(namespace.status(MODEL).get("availableReplicas", 0))


def _tokens_per_second(namespace: Namespace) -> int:
    return int(namespace.status(MODEL).get("language", {}).get("tokensPerSecond", 0))
