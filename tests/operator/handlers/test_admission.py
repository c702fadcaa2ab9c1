"""What the API server is answered when it asks whether to store a resource."""

import asyncio
import os
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
from e2e.cluster.plane.certificates import Authority
from e2e.cluster.state import free_ports
from tests.operator.controller.bodies import model, pool
from tests.operator.controller.standin import StandIn, kubeconfig, standing_in
from tests.waiting import until

from argosy.cluster.client.connection import Connection
from argosy.handlers import admission, resources
from argosy.handlers.admission import Admission
from argosy.handlers.resources import advice, refusal

WRONG = {"versoin": 1, "minReplicas": 3, "maxReplicas": 2, "storageUri": "nowhere"}


def test_a_valid_resource_is_not_refused() -> None:
    assert refusal(model(), None) == ""
    assert refusal(pool(), None) == ""
    assert refusal(model(version=2), model()) == ""


def test_all_errors_are_named_at_once() -> None:
    lines = refusal(model(**WRONG), None).splitlines()
    assert lines[0] == "InferenceModel n/m is invalid:"
    assert [line.partition(": ")[0] for line in sorted(lines[1:])] == [
        "- spec.maxReplicas",
        "- spec.storageUri",
        "- spec.versoin",
    ]


def test_an_invalid_resource_can_be_labelled_and_its_status_be_written() -> None:
    old = model(**WRONG)
    new = {**old, "metadata": {**old["metadata"], "labels": {"a": "b"}}, "status": {"conditions": []}}
    assert refusal(new, old) == ""


def test_a_change_that_leaves_an_error_is_refused() -> None:
    assert "spec.storageUri" in refusal(model(**WRONG, version=7), model(**WRONG))


def test_a_resource_that_is_being_deleted_is_let_go() -> None:
    body = model(**WRONG)
    body["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert refusal(body, model()) == ""


STEPS = {"steps": [{"traffic": "10%"}]}


@pytest.mark.parametrize(
    ("spec", "before", "beginning"),
    [
        ({"rollout": {"strategy": "Recreate"}}, None, "spec.rollout.strategy: Recreate unloads the only replica"),
        (
            {"rollout": STEPS, "maxBatchSize": 8},
            {"rollout": STEPS},
            "spec.version: is still 1, and spec.rollout proves",
        ),
        (
            {"rollout": {**STEPS, "analysis": {"latency": {"serviceTime": 1}}}},
            None,
            "spec.rollout.analysis.latency.serviceTime: is 1, so that a version which is as fast",
        ),
        (
            {"rollout": {**STEPS, "analysis": {"errorRate": {"acceptable": "0.001%", "unacceptable": "0.002%"}}}},
            None,
            "spec.rollout.analysis.errorRate: a step needs 294440 requests without a failure for a verdict",
        ),
    ],
)
def test_what_a_rollout_will_do_is_a_warning_beforehand(
    spec: dict[str, Any], before: dict[str, Any] | None, beginning: str
) -> None:
    old = model(**before) if before is not None else None
    (warning,) = advice(model(**spec), old)
    assert warning.startswith(beginning)
    assert len(warning) <= 256
    assert advice(model(**spec), model(**spec)) == [], "the spec stays as it is"


def test_the_warning_of_a_gap_says_what_becomes_of_requests_with_and_without_an_activator() -> None:
    (warning,) = advice(model(rollout={"strategy": "Recreate"}), None)
    assert "until then requests fail, or wait where the pool has an activator" in warning


@pytest.mark.parametrize(
    ("spec", "before"),
    [
        ({"rollout": STEPS}, None),
        ({"rollout": STEPS, "version": 2, "maxBatchSize": 8}, {"rollout": STEPS}),
        ({"rollout": STEPS, "minReplicas": 2}, {"rollout": STEPS}),
        ({"maxBatchSize": 8}, {}),
        ({"rollout": {"strategy": "Recreate"}, "minReplicas": 2}, None),
        ({"rollout": {"analysis": {"latency": {"p99": 0.5}}}}, None),
        ({"rollout": {**STEPS, "analysis": {"errorRate": {"acceptable": "1%", "unacceptable": "100%"}}}}, None),
    ],
)
def test_what_does_not_surprise_has_no_warning(spec: dict[str, Any], before: dict[str, Any] | None) -> None:
    assert advice(model(**spec), model(**before) if before is not None else None) == []
    assert advice(pool(), None) == []


@dataclass(slots=True)
class Served:
    """A running admission server, and what it said of itself: `errors` ends with the empty text while it is well."""

    url: str
    context: ssl.SSLContext
    errors: list[str] = field(default_factory=list)
    starts: int = 0

    def started(self) -> None:
        self.starts += 1

    @property
    def well(self) -> bool:
        return self.errors[-1:] == [""]

    async def review(self, body: dict[str, Any], old: dict[str, Any] | None = None) -> dict[str, Any]:
        """Ask about a resource as the API server does, and return the answer."""
        kinds = {"InferenceModel": "inferencemodels", "ServingPool": "servingpools"}
        request = {
            "uid": "u",
            "operation": "UPDATE" if old else "CREATE",
            "resource": {"group": "argosy.dev", "version": "v1alpha1", "resource": kinds[body["kind"]]},
            "userInfo": {"username": "someone"},
            "object": body,
            "oldObject": old,
        }
        review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
        async with httpx.AsyncClient(verify=self.context, trust_env=False) as client:
            answer = await client.post(f"{self.url}/{resources.PATH}", json=review)
        result: dict[str, Any] = answer.raise_for_status().json()["response"]
        return result


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    """Create the authority that the API server trusts."""
    made = Authority(tmp_path / "authority")
    made.create()
    return made


def certify(authority: Authority, folder: Path) -> None:
    """Put a certificate and its key where the Secret's files are."""
    folder.mkdir(exist_ok=True)
    files = authority.server("admission", ["localhost"], ["127.0.0.1"])
    for source, name in zip(files, (admission.CERTIFICATE, admission.KEY), strict=True):
        os.replace(source, folder / name)


@asynccontextmanager
async def serving(authority: Authority, folder: Path) -> AsyncIterator[Served]:
    """Run the server, with an API server that it can log in to."""
    (port,) = free_ports(1)
    served = Served(f"https://127.0.0.1:{port}", ssl.create_default_context(cafile=authority.certificate))
    async with standing_in() as standin, Connection.open(kubeconfig(standin, folder)) as connection:
        work = Admission("127.0.0.1", port, folder / "tls").run(connection, served.started, served.errors.append)
        task = asyncio.create_task(work)
        try:
            yield served
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        assert watches(standin) == []


def watches(standin: StandIn) -> list[str]:
    """Return what was watched: kopf is to watch nothing."""
    return [path for verb, path, _ in standin.requests if verb == "watch"]


async def test_the_api_server_is_answered_over_tls(authority: Authority, tmp_path: Path) -> None:
    certify(authority, tmp_path / "tls")
    async with serving(authority, tmp_path) as served:
        await until(lambda: served.well)
        assert await served.review(model()) == {"uid": "u", "allowed": True}
        assert await served.review(pool(), pool(maxGpusPerServer=4)) == {"uid": "u", "allowed": True}
        refused = await served.review(model(**WRONG))
        assert refused["allowed"] is False
        assert refused["status"] == {"code": 422, "message": refusal(model(**WRONG), None)}
        warned = await served.review(model(rollout={"strategy": "Recreate"}))
        assert (warned["allowed"], warned["warnings"]) == (True, advice(model(rollout={"strategy": "Recreate"}), None))
        assert served.starts == 1


async def test_a_bug_of_ours_refuses_nothing(
    authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object) -> str:
        raise KeyError("a bug")

    monkeypatch.setattr(resources, "refusal", broken)
    certify(authority, tmp_path / "tls")
    async with serving(authority, tmp_path) as served:
        await until(lambda: served.well)
        answer = await served.review(model(**WRONG))
    assert answer["allowed"] is True
    assert answer["warnings"] == ["Argosy could not validate this resource (KeyError); see its status"]
    assert "a resource cannot be validated" in caplog.text


async def test_a_certificate_that_comes_later_is_waited_for(
    authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(admission, "RETRY_FIRST_S", 0.05)
    async with serving(authority, tmp_path) as served:
        await until(lambda: bool(served.errors))
        assert "No such file" in served.errors[0]
        certify(authority, tmp_path / "tls")
        await until(lambda: served.well)
        assert (await served.review(model()))["allowed"] is True


async def test_nothing_is_retained_of_the_resources_that_are_reviewed(
    authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    restored: list[str] = []

    def record(review: Any) -> Any:
        review = without_uids(review)
        restored.extend(str(review["request"][name].get("metadata", {}).get("uid")) for name in ("object", "oldObject"))
        return review

    without_uids = admission._without_uids
    monkeypatch.setattr(admission, "_without_uids", record)
    certify(authority, tmp_path / "tls")
    async with serving(authority, tmp_path) as served:
        await until(lambda: served.well)
        await served.review(model(version=2), model())
    assert restored == ["None", "None"]
