"""What a build is asked: all that the spec says of the engine, and nothing of what does not concern it."""

from argosy.planning.builds.images import BuildImages
from argosy.planning.builds.requests import requests
from argosy_agent.contract.builds import DataSource, Gate, TensorSpec

from .simulated_builds import built, pool

FULL = {
    "precision": "int8",
    "options": {"per_channel": True},
    "calibration": {"dataUri": "s3://b/calibration", "samples": 64},
    "accuracy": {"dataUri": "s3://b/d", "metric": "top1_agreement", "min": 0.9, "samples": 500},
}


def test_all_that_the_spec_says_of_the_engine_is_requested() -> None:
    model = built(
        "m",
        engine=FULL,
        maxBatchSize=8,
        inputs=[{"name": "x", "dataType": "TYPE_FP32", "dims": [3]}],
        storage={"secretName": "mine"},
    )
    (request,) = requests(model, pool(), "amd64", BuildImages("image:1")).values()
    assert request.gate == Gate(
        DataSource("s3://b/d", secret="mine"),
        "top1_agreement",
        minimum=0.9,
        baseline_precision="fp16",
        samples=500,
    )
    assert request.calibration == DataSource("s3://b/calibration", secret="mine")
    assert (request.calibration_samples, request.options, request.precision) == (64, {"per_channel": True}, "int8")
    assert (request.inputs, request.max_batch_size) == ((TensorSpec("x", "TYPE_FP32", (3,)),), 8)
    assert (request.architecture, request.compiler) == ("amd64", "image:1")


def test_what_does_not_concern_the_engine_asks_for_the_same_one() -> None:
    uri = "s3://b/m"
    plain = built("m", engine=FULL, storageUri=uri)
    other = built("other", engine=FULL, storageUri=uri, minReplicas=3, footprint={"gpuMemory": "2Gi"})
    assert (
        requests(plain, pool(), "amd64", BuildImages("i"))[1].name
        == requests(other, pool(), "amd64", BuildImages("i"))[1].name
    )
