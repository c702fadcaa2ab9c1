"""Engines on a real cluster: built in Jobs, once, checked on real data, and served in place of the models' files.

Models, data and engines are in a bucket of this process, which delays requests and fails as a test requires. The tests
build on one another, in their order.
"""

import base64
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from tests.agent.engines.bucketserver import Bucket, serving

from e2e.asking.client import Client
from e2e.asking.namespace import Namespace
from e2e.cluster.node.network import NODE_ADDRESS
from e2e.declared.digits import CLASSES, PIXELS, Floats, digits, exported_program, onnx_model
from e2e.declared.resources import API, Body, pool
from e2e.parts import podprocesses

pytestmark = pytest.mark.timeout(600)

POOL, SECRET = "compiled", "bucket"
PLAIN, INT8 = "inferencemodel/plain", "inferencemodel/int8"
MODEL, COPY, OTHER = "models/digits.onnx", "copies/digits.onnx", "models/other.onnx"
PROGRAM = "models/digits.pt2"
TRAIN, TEST = "data/train.npz", "data/test.npz"
BLOCKED = "late/"
"""Keys of data that a test may hold up."""
Break = Callable[[dict[str, bytes], str], None]
"""Damages one object of a bucket."""


@pytest.fixture(scope="module")
def bucket() -> Iterator[Bucket]:
    """Yield a bucket that Pods reach, with models and data."""
    train, test = digits()
    with serving(Bucket(), NODE_ADDRESS) as bucket:
        bucket.objects.update({MODEL: onnx_model(), COPY: onnx_model(), OTHER: onnx_model(2)})
        bucket.objects.update({TRAIN: train.npz(), TEST: test.npz()})
        yield bucket
        bucket.released.set()


@pytest.fixture(scope="module", autouse=True)
def declared(namespace: Namespace, bucket: Bucket) -> None:
    """Declare a pool that stores engines, and the model as it was."""
    namespace.apply(_secret(SECRET, bucket.url), _pool(POOL), model("plain"))


def _secret(name: str, url: str) -> Body:
    """Return credentials for a bucket at this address."""
    keys = {
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": url,
    }
    data = {name: base64.b64encode(value.encode()).decode() for name, value in keys.items()}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "data": data}


def _pool(name: str, secret: str = SECRET) -> Body:
    return pool(name, storage={"secretName": secret, "engineCache": {"storageUri": "s3://fleet/engines"}})


def model(name: str, key: str = MODEL, *, version: int = 1, pool: str = POOL, **spec: Any) -> Body:
    """Return the network for handwritten digits."""
    merged = {
        "poolRef": {"name": pool},
        "modelFormat": {"name": "onnx"},
        "version": version,
        "storageUri": f"s3://fleet/{key}",
        "maxBatchSize": 64,
        "inputs": [{"name": "x", "dataType": "TYPE_FP32", "dims": [PIXELS]}],
        "outputs": [{"name": "y", "dataType": "TYPE_FP32", "dims": [CLASSES]}],
        **spec,
    }
    return {"apiVersion": API, "kind": "InferenceModel", "metadata": {"name": name}, "spec": merged}


def int8(most: float = 2.0, calibration: str = TRAIN, test: str = TEST) -> Body:
    """Return an int8 engine, whose answers may differ by so much from the model's."""
    return {
        "builder": "onnxruntime",
        "precision": "int8",
        "calibration": {"dataUri": f"s3://fleet/{calibration}"},
        "accuracy": {"metric": "max_absolute_error", "max": most, "dataUri": f"s3://fleet/{test}"},
    }


def answers(client: Client, resource: str, images: Floats) -> Floats:
    """Return the model's answers to images."""
    tensor = {"name": "x", "datatype": "FP32", "shape": list(images.shape), "data": images.ravel().tolist()}
    answer = client.get(f"{client.url(resource)}/infer", json.dumps({"inputs": [tensor]}))
    assert answer.status == 200, answer
    (output,) = answer.json()["outputs"]
    return np.array(output["data"], np.float32).reshape(output["shape"])


def engine(namespace: Namespace, resource: str, version: int = 1) -> dict[str, Any]:
    """Return the model's one engine of a version."""
    engines = [
        candidate
        for candidate in namespace.status(resource).get("engines", ())
        if candidate.get("version", 1) == version
    ]
    return engines[0] if len(engines) == 1 else {}


def jobs(namespace: Namespace, build: str = "") -> list[dict[str, Any]]:
    """Return the Jobs of builds, or of one."""
    selector = f"argosy.dev/build={build}" if build else "argosy.dev/build"
    items: list[dict[str, Any]] = namespace.read("jobs", "-l", selector)["items"]
    return items


def ended(namespace: Namespace, build: str) -> tuple[int, int]:
    """Return how many Pods of a build's one Job succeeded and failed, once it is over: a report comes before its Pod's
    end.
    """

    def status() -> dict[str, Any]:
        (job,) = jobs(namespace, build)
        status: dict[str, Any] = job["status"]
        return status

    namespace.until("the Job's end", lambda: "conditions" in status())
    return status().get("succeeded", 0), status().get("failed", 0)


def reasons(namespace: Namespace, name: str) -> set[str]:
    """Return the reasons of the Events of a model."""
    events = namespace.read("events", "--field-selector", f"involvedObject.name={name}")["items"]
    return {event["reason"] for event in events}


def artifacts(bucket: Bucket) -> set[str]:
    """Return the manifests of the engines in the store."""
    return {key for key in bucket.objects if key.startswith("engines/") and key.count("/") == 2}


def test_an_int8_engine_is_built_in_a_job_and_answers_as_its_report_says(
    namespace: Namespace, client: Client, bucket: Bucket
) -> None:
    namespace.apply(model("int8", engine=int8()))
    namespace.ready(PLAIN, INT8, timeout_s=240)
    built = engine(namespace, INT8)
    assert (built["state"], built["serving"], built["accuracy"]["passed"]) == ("Ready", True, True)
    (job,) = jobs(namespace)
    assert ended(namespace, built["build"]) == (1, 0)
    assert job["metadata"]["labels"]["argosy.dev/build"] == built["build"]
    assert len(artifacts(bucket)) == 1

    _, test = digits()
    before, now = answers(client, PLAIN, test.images[:64]), answers(client, INT8, test.images[:64])
    assert 0 < np.abs(before - now).max() <= built["accuracy"]["value"] + 1e-4
    assert (now.argmax(1) == test.labels[:64]).mean() > 0.85
    assert {"BuildStarted", "BuildSucceeded"} <= reasons(namespace, "int8")


def test_a_second_model_of_the_same_build_builds_nothing(namespace: Namespace, client: Client, bucket: Bucket) -> None:
    before, stored = jobs(namespace), artifacts(bucket)
    namespace.apply(model("twin", engine=int8()))
    namespace.ready("inferencemodel/twin")
    assert [job["metadata"]["uid"] for job in jobs(namespace)] == [job["metadata"]["uid"] for job in before]
    assert artifacts(bucket) == stored
    _, test = digits()
    both = [answers(client, f"inferencemodel/{name}", test.images[:8]) for name in ("int8", "twin")]
    assert np.array_equal(*both)


def test_equal_files_from_another_folder_have_the_engine_that_is_there(namespace: Namespace, bucket: Bucket) -> None:
    stored = artifacts(bucket)
    namespace.apply(model("copy", COPY, engine=int8()))
    namespace.ready("inferencemodel/copy")
    assert engine(namespace, "inferencemodel/copy")["cached"] is True
    assert artifacts(bucket) == stored


def test_an_inaccurate_engine_is_blocked_while_the_old_version_serves(namespace: Namespace, client: Client) -> None:
    _, test = digits()
    before = answers(client, INT8, test.images[:8])
    namespace.apply(model("int8", OTHER, version=2, engine=int8(1e-6)))
    message = namespace.says(INT8, "AccuracyVerified", "False", "AccuracyTooLow")
    assert "1e-06" in message
    assert namespace.condition(INT8, "Ready")["status"] == "False"
    assert np.array_equal(answers(client, INT8, test.images[:8]), before)
    assert namespace.status(INT8)["activeVersion"] == 1
    assert "AccuracyTooLow" in reasons(namespace, "int8")

    namespace.apply(model("int8", OTHER, version=2, engine=int8()))
    namespace.ready(INT8)
    assert not np.array_equal(answers(client, INT8, test.images[:8]), before)


@contextmanager
def waiting_build(namespace: Namespace, bucket: Bucket, name: str) -> Iterator[dict[str, Any]]:
    """Yield the Pod of a model's build, which waits for its calibration data while the block runs."""
    key = f"{BLOCKED}{name}.npz"
    bucket.objects[key] = digits()[0].npz()
    bucket.released.clear()
    bucket.blocked = BLOCKED
    try:
        namespace.apply(model(name, engine=int8(calibration=key)))
        namespace.until("a Pod that waits for data", lambda: ("GET", f"/fleet/{key}") in _requested(bucket))
        build = engine(namespace, f"inferencemodel/{name}")["build"]
        (pod,) = namespace.read("pods", "-l", f"argosy.dev/build={build}")["items"]
        yield pod
    finally:
        bucket.released.set()


def _requested(bucket: Bucket) -> set[tuple[str, str]]:
    return {(method, path.partition("?")[0]) for method, path in bucket.requests}


def test_a_build_whose_pod_is_killed_ends_right(namespace: Namespace, bucket: Bucket) -> None:
    with waiting_build(namespace, bucket, "killed") as pod:
        assert engine(namespace, "inferencemodel/killed")["state"] == "Building"
        podprocesses.kill(pod, "argosy_builder")
    namespace.ready("inferencemodel/killed")
    build = engine(namespace, "inferencemodel/killed")["build"]
    assert ended(namespace, build) == (1, 1)


def test_a_job_that_is_deleted_by_hand_is_recreated(namespace: Namespace, bucket: Bucket) -> None:
    with waiting_build(namespace, bucket, "deleted") as pod:
        build = pod["metadata"]["labels"]["argosy.dev/build"]
        (before,) = jobs(namespace, build)
        namespace("delete", "job", before["metadata"]["name"])
        namespace.until("another Job", lambda: _uids(namespace, build) - {before["metadata"]["uid"]} != set())
    namespace.ready("inferencemodel/deleted")
    assert len(jobs(namespace, build)) <= 1, "one that the deleted Pod left nothing to do for goes"


def _uids(namespace: Namespace, build: str) -> set[str]:
    return {job["metadata"]["uid"] for job in jobs(namespace, build)}


def test_a_model_that_is_deleted_while_it_builds_leaves_nothing(namespace: Namespace, bucket: Bucket) -> None:
    stored = artifacts(bucket)
    with waiting_build(namespace, bucket, "gone") as pod:
        build = pod["metadata"]["labels"]["argosy.dev/build"]
        namespace("delete", "inferencemodel/gone", "--timeout=60s", timeout_s=70)
        kinds = "jobs,pods,configmaps,roles,rolebindings,serviceaccounts"
        label = f"argosy.dev/build={build}"
        namespace.until("nothing of the build", lambda: not namespace.read(kinds, "-l", label)["items"])
    assert artifacts(bucket) == stored


def _lost(objects: dict[str, bytes], key: str) -> None:
    del objects[key]


def _changed(objects: dict[str, bytes], key: str) -> None:
    objects[key] = objects[key][::-1]


@pytest.mark.parametrize(("name", "most", "broken"), [("whole", 3.0, _lost), ("mended", 3.5, _changed)])
def test_a_broken_engine_is_built_over(
    namespace: Namespace, client: Client, bucket: Bucket, name: str, most: float, broken: Break
) -> None:
    """Its manifest stands; its files do not, or are others."""
    manifest = f"engines/{engine(namespace, INT8, 2)['key']}/manifest.json"
    assert manifest in artifacts(bucket)
    folder = f"{manifest.removesuffix('manifest.json')}{json.loads(bucket.objects[manifest])['attempt']}/"
    for key in [key for key in bucket.objects if key.startswith(folder)]:
        broken(bucket.objects, key)
    resource = f"inferencemodel/{name}"
    namespace.apply(model(name, OTHER, engine=int8(most)))
    namespace.ready(resource)
    built = engine(namespace, resource)
    assert (built["state"], built["cached"]) == ("Ready", False)
    _, test = digits()
    assert answers(client, resource, test.images[:8]).shape == (8, CLASSES)


def test_a_store_that_cannot_be_reached_is_reported_until_it_can(namespace: Namespace, bucket: Bucket) -> None:
    storage = {"secretName": SECRET}
    away = model("away", pool="away", engine=int8(6.0), storage=storage)
    namespace.apply(_secret("lost", f"http://{NODE_ADDRESS}:1"), _pool("away", "lost"), away)
    namespace.until("the reason", lambda: "StoreUnavailable" in _why(namespace, "away"))
    namespace.apply(_secret("lost", bucket.url))
    namespace.ready("inferencemodel/away")


def _why(namespace: Namespace, name: str) -> str:
    return str(namespace.condition(f"inferencemodel/{name}", "EngineReady").get("message", ""))


def test_a_store_that_is_full_is_reported_and_what_serves_goes_on(
    namespace: Namespace, client: Client, bucket: Bucket
) -> None:
    quota, bucket.quota = bucket.quota, 0
    try:
        namespace.apply(model("twin", OTHER, version=2, engine=int8(4.0, TEST)))
        message = namespace.says("inferencemodel/twin", "EngineReady", "False", "BuildFailed", 300)
    finally:
        bucket.quota = quota
    assert message.startswith("StoreFull")
    _, test = digits()
    assert answers(client, "inferencemodel/twin", test.images[:8]).shape == (8, CLASSES)


def test_a_store_that_refuses_for_a_while_is_reported_and_tried_again(namespace: Namespace, bucket: Bucket) -> None:
    bucket.refused["PUT"] = (403, "AccessDenied")
    try:
        namespace.apply(model("refused", engine=int8(5.0, TEST)))
        namespace.until("the reason", lambda: "StoreUnavailable" in _why(namespace, "refused"))
    finally:
        bucket.refused.clear()
    namespace.ready("inferencemodel/refused")


def test_a_pytorch_model_is_compiled_and_answers_like_its_source(
    namespace: Namespace, client: Client, bucket: Bucket
) -> None:
    bucket.objects[PROGRAM] = exported_program()
    spec = {
        "modelFormat": {"name": "pytorch"},
        "engine": {
            "builder": "aotinductor",
            "accuracy": {"metric": "max_absolute_error", "max": 1e-3, "dataUri": f"s3://fleet/{TEST}"},
        },
    }
    namespace.apply(model("compiled", PROGRAM, **spec))
    namespace.ready("inferencemodel/compiled", timeout_s=300)
    compiled = engine(namespace, "inferencemodel/compiled")
    assert (compiled["state"], compiled["cached"], compiled["accuracy"]["passed"]) == ("Ready", False, True)
    _, test = digits()
    both = [answers(client, name, test.images[:64]) for name in (PLAIN, "inferencemodel/compiled")]
    assert np.abs(both[0] - both[1]).max() < 1e-3
