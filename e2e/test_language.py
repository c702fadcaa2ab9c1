"""Language models over OpenAI's API: one on vLLM, declared, Ready, its engine killed, measured, scaled and drained
under streams; and one of two variants, whose regime follows the load. They share a pool, which requires API keys.

The tests build on one another, in their order.
"""

import hashlib
import json
from typing import Any

import pytest

from e2e.asking.client import Answer, Client
from e2e.asking.namespace import Namespace
from e2e.declared.resources import Body, language_model, pool, routed_model
from e2e.deployed import engines
from e2e.parts import podprocesses

pytestmark = pytest.mark.timeout(1200)

MODEL, ROUTED, POOL = "inferencemodel/chat", "inferencemodel/routed", "language"
KEY = "key-of-team-a"
KEYS: Body = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "openai-keys"},
    "stringData": {"keys": f"team-a:sha256:{hashlib.sha256(KEY.encode()).hexdigest()}\n"},
}
START_S = 600.0
"""How long an engine may take to start, on cores that others use too."""
SERVING = {"first": "Serving", "second": "Serving"}
ANSWER = 'The "with" statement is used to wrap the execution of a block'


@pytest.fixture(scope="module", autouse=True)
def served(namespace: Namespace, storage: str) -> None:
    """Declare a pool whose servers have vLLM and require API keys, and both models."""
    template = engines.pod_template(engines.prepare(), OMP_NUM_THREADS="1", VLLM_CPU_KVCACHE_SPACE="1")
    runtime = {"name": "argosy", "podTemplate": template}
    keys = {"apiKeys": {"secretName": "openai-keys", "key": "keys"}}
    adapters = [{"name": "first", "storageUri": f"{storage}/models/adapter.tar", "rank": 8}]
    model = language_model("chat", POOL, f"{storage}/models/llm.tar", adapters=adapters)
    routed = routed_model("routed", POOL, f"{storage}/models/llm.tar", crossover=2)
    namespace.apply(KEYS, pool(POOL, runtime=runtime, openai=keys), model, routed)
    namespace.ready(MODEL, ROUTED, timeout_s=START_S)


def chat(client: Client, key: str = KEY, **fields: Any) -> Answer:
    """Return the answer to a question that the model knows by heart."""
    messages = [{"role": "user", "content": "What is the with statement?"}]
    body = {"model": "chat", "messages": messages, "max_tokens": 60, "temperature": 0, **fields}
    return client.get(f"{client.openai(MODEL)}/chat/completions", json.dumps(body), key, START_S)


def test_it_answers_chats_through_its_service(client: Client) -> None:
    answer = chat(client)
    assert answer.status == 200, answer
    (choice,) = answer.json()["choices"]
    assert choice["message"]["content"].startswith(ANSWER)
    assert answer.json()["usage"]["completion_tokens"] > 10


@pytest.mark.parametrize("key", ["", "key-of-team-b"])
def test_a_chat_without_an_accepted_key_is_refused(client: Client, key: str) -> None:
    answer = chat(client, key)
    assert (answer.status, answer.json()["error"]["code"]) == (401, "invalid_api_key")


def test_an_error_is_one_of_openais(client: Client) -> None:
    answer = chat(client, max_tokens=100_000)
    assert (answer.status, answer.json()["error"]["type"]) == (400, "invalid_request_error")


def test_the_regime_follows_the_load(namespace: Namespace, client: Client) -> None:
    namespace.until("the regime at rest", lambda: _regime(namespace) == "few")
    with client.streams(ROUTED, "routed", seconds=600, workers=1, key=KEY) as streams:
        with client.streams(ROUTED, "routed", seconds=600, workers=8, key=KEY) as more:
            namespace.until("the regime under load", lambda: _regime(namespace) == "many")
        namespace.until("the regime at rest again", lambda: _regime(namespace) == "few")
    assert streams.failed == more.failed == []
    # The other model is to be scaled by itself.
    namespace("delete", ROUTED)


def test_an_engine_that_is_killed_ends_its_streams_and_comes_back(namespace: Namespace, client: Client) -> None:
    (pod,) = namespace.server_pods(POOL)
    with client.streams(MODEL, "chat", seconds=600, workers=2, key=KEY) as streams:
        podprocesses.kill(pod, "EngineCore")
        answer = chat(client)
        if answer.status != 200:  # it came before the death was noticed, and ended with the streams
            assert "its engine died" in answer.text
            answer = chat(client)
        assert _text(answer).startswith(ANSWER)
    errors = [error for _, error in streams.failed]
    assert errors
    assert [error for error in errors if "its engine died" not in error] == []
    (after,) = namespace.server_pods(POOL)
    assert [container["restartCount"] for container in after["status"]["containerStatuses"]] == [0, 0]


def test_an_adapter_is_added_while_others_stream(namespace: Namespace, client: Client, storage: str) -> None:
    with client.streams(MODEL, "chat", seconds=300, workers=2, key=KEY) as streams:
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
    with client.streams(MODEL, "chat", seconds=900, workers=12, key=KEY) as streams:
        scaled = {"slo": {"timeToFirstToken": {"p95": "50ms"}}, "maxReplicas": 2}
        namespace("patch", MODEL, "--type=merge", "-p", json.dumps({"spec": scaled}))
        namespace.until("a second replica", lambda: _replicas(namespace) == 2, START_S)
        assert namespace.status(MODEL)["scaling"]["replicas"] == 2
        namespace.until("tokens per second", lambda: int(namespace.columns(MODEL)["TOKENS/S"] or "0") > 0)
        namespace("patch", MODEL, "--type=merge", "-p", json.dumps({"spec": {"replicas": 1}}))
        namespace.until("one server", lambda: len(namespace.server_pods(POOL)) == 1, START_S)
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


def _regime(namespace: Namespace) -> str:
    return namespace.columns(ROUTED)["REGIME"]
