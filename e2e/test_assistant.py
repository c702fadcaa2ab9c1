"""The example on a real cluster: applied, served through its Service, and applied again without a change.

The tests build on one another, in their order.
"""

import json
from pathlib import Path

import pytest

from e2e.asking.client import Client
from e2e.asking.namespace import Namespace
from e2e.declared import assistant

pytestmark = pytest.mark.timeout(1800)


@pytest.fixture(scope="module")
def manifests(storage: str) -> str:
    return assistant.manifests(storage)


@pytest.fixture(scope="module", autouse=True)
def served(namespace: Namespace, manifests: str) -> None:
    """Apply all with kubectl, and wait for it with `kubectl wait`."""
    namespace("apply", "-f", "-", stdin=manifests)
    namespace.ready(*assistant.RESOURCES, timeout_s=240)


def _answer(client: Client, prompt: str) -> dict[str, object]:
    body = json.dumps({"prompt": prompt, "max_tokens": 60, "streaming": True})
    answer = client.get(f"{client.url('ensemble/assistant')}/generate_stream", body)
    assert answer.status == 200, answer
    events = answer.events()
    assert ["score" in event for event in events] == [True, *[False] * (len(events) - 1)]
    return {**events[-1], "score": events[0]["score"], "text": "".join(event["text"] for event in events)}


def test_it_answers_through_the_ensembles_service(client: Client) -> None:
    answer = _answer(client, assistant.HARMLESS)
    assert answer["refused"] is False
    assert str(answer["text"]).startswith('The "with" statement is used to wrap the execution of a block')


def test_it_refuses_what_it_should(client: Client) -> None:
    answer = _answer(client, assistant.HARMFUL)
    assert answer["refused"] is True
    assert float(str(answer["score"])) > 0.4


def test_it_is_a_chat_model_of_openais_api(client: Client) -> None:
    url = client.openai("ensemble/assistant")
    assert "assistant" in [model["id"] for model in client.get(f"{url}/models").json()["data"]]
    chat = {"model": "assistant", "messages": [{"role": "user", "content": assistant.HARMLESS}], "stream": True}
    answer = client.get(f"{url}/chat/completions", json.dumps(chat))
    assert answer.status == 200, answer
    *events, last = [line.removeprefix("data: ") for line in answer.text.splitlines() if line.startswith("data: ")]
    choices = [json.loads(event)["choices"][0] for event in events]
    assert (last, choices[-1]["finish_reason"]) == ("[DONE]", "stop")
    text = "".join(choice["delta"].get("content") or "" for choice in choices)
    assert text.startswith('The "with" statement is used to wrap the execution of a block')
    chat["messages"] = [{"role": "user", "content": assistant.HARMFUL}]
    refusal = client.get(f"{url}/chat/completions", json.dumps(chat | {"stream": False}))
    assert refusal.json()["choices"][0]["finish_reason"] == "content_filter"


def test_statuses_report_where_it_is_and_how_it_is_reached(namespace: Namespace, client: Client) -> None:
    (pod,) = namespace.server_pods("assistant")
    server = pod["metadata"]["labels"]["argosy.dev/server"]
    for resource in assistant.RESOURCES[1:]:
        body = namespace.read(resource)
        status = body["status"]
        assert [(placement["server"], placement["node"]) for placement in status["placement"]] == [
            (server, pod["spec"]["nodeName"])
        ]
        assert status["url"].endswith(f"{namespace.name}.svc:8000/v2/models/{body['metadata']['name']}")
        assert status["observedGeneration"] == body["metadata"]["generation"]
        assert (status["replicas"], status["availableReplicas"]) == (1, 1)
    pool = namespace.status(assistant.RESOURCES[0])
    assert [item["name"] for item in pool["servers"]] == [server]
    assert client.get(f"{client.url(assistant.RESOURCES[0])}/v2/health/ready").status == 200


def test_only_the_agent_has_a_token_and_nothing_is_run_as_root(namespace: Namespace) -> None:
    (pod,) = namespace.server_pods("assistant")
    seen = {}
    for container in ("server", "agent"):
        script = "import os; print(os.getuid(), os.path.exists('/var/run/secrets/kubernetes.io/serviceaccount/token'))"
        words = ("exec", pod["metadata"]["name"], "-c", container, "--", "python", "-c", script)
        seen[container] = namespace(*words).split()
    assert seen == {"server": ["1000", "False"], "agent": ["1000", "True"]}


def test_applying_it_again_changes_nothing(namespace: Namespace, manifests: str, tmp_path: Path) -> None:
    before = namespace.states()
    output = namespace("apply", "-f", "-", stdin=manifests)
    assert {line.rpartition(" ")[2] for line in output.splitlines()} == {"unchanged"}
    file = tmp_path / "assistant.yaml"
    file.write_text(manifests)
    difference = namespace.access.kubectl_process("diff", "-n", namespace.name, "-f", str(file))
    assert (difference.returncode, difference.stdout) == (0, "")
    assert namespace.states() == before
