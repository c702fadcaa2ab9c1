"""Storage that fails: the model says how, the others are served, and what is put right is served, too."""

import pytest

from e2e.asking.client import Client
from e2e.asking.namespace import Namespace
from e2e.declared.resources import pool, version_model

pytestmark = pytest.mark.timeout(600)

TROUBLES = {
    "forbidden": ("status/403/version.tar", "DownloadFailed", "403"),
    "missing": ("status/404/version.tar", "DownloadFailed", "404"),
    "broken": ("status/500/version.tar", "DownloadFailed", "500"),
    "half": ("half/version.tar", "DownloadFailed", ""),
    "other": ("models/version.tar", "DigestMismatch", "0" * 64),
}


@pytest.fixture(scope="module", autouse=True)
def applied(namespace: Namespace, storage: str) -> None:
    troubled = [
        version_model(name, "troubled", storage, storageUri=f"{storage}/{path}", **_digest(reason))
        for name, (path, reason, _) in TROUBLES.items()
    ]
    namespace.apply(pool("troubled"), version_model("good", "troubled", storage), *troubled)


def _digest(reason: str) -> dict[str, str]:
    return {"digest": f"sha256:{'0' * 64}"} if reason == "DigestMismatch" else {}


def test_the_others_are_served(namespace: Namespace, client: Client) -> None:
    namespace.ready("inferencemodel/good")
    assert client.version("inferencemodel/good") == [1]


@pytest.mark.parametrize("name", TROUBLES)
def test_the_model_says_what_is_wrong(namespace: Namespace, storage: str, name: str) -> None:
    path, reason, words = TROUBLES[name]
    message = namespace.says(f"inferencemodel/{name}", "Ready", "False", reason)
    assert words in message
    assert f"{storage}/{path}" in message or reason == "DigestMismatch"
    assert namespace.says(f"inferencemodel/{name}", "Stalled", "True", reason) == message
    events = namespace.read("events", "--field-selector", f"involvedObject.name={name},type=Warning")["items"]
    assert reason in {event["reason"] for event in events}


def test_what_is_put_right_is_served(namespace: Namespace, client: Client, storage: str) -> None:
    namespace.apply(version_model("missing", "troubled", storage))
    namespace.ready("inferencemodel/missing")
    assert client.version("inferencemodel/missing") == [1]
