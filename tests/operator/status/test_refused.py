"""What is invalid or cannot be placed: a reason, the field to set, and what serves goes on."""

from tests.operator.planning.declared import pool
from tests.operator.status.rounds import (
    GIB,
    LATER,
    condition_of,
    decided_round,
    described,
    ensemble,
    loaded,
    model,
    of_ensemble,
    of_model,
    of_pool,
    report,
)

from argosy.api import Problem
from argosy.status.statuses import statuses


def test_what_fits_nowhere_is_stalled_with_the_reason() -> None:
    status = of_model(statuses(decided_round([pool(), model(footprint={"gpuMemory": "100Gi"})])))
    assert described(status, "Placed") == ("False", "GpuTooSmall")
    assert described(status, "Stalled") == ("True", "GpuTooSmall")
    assert "largest usable is 64 GiB" in condition_of(status, "Ready").message
    assert status.scaling is not None
    assert status.scaling.desired == 1


def test_some_replicas_without_a_server_are_reported() -> None:
    resources = [pool(), model(minReplicas=3)]
    result = statuses(decided_round(resources, [report("p-0", loaded("m")), report("p-1", loaded("m"))]))
    assert described(of_model(result), "Placed") == ("False", "PartiallyPlaced")
    assert "2 of 3 replicas are placed" in condition_of(of_model(result), "Placed").message
    assert not of_model(result).ready
    assert described(of_pool(result), "Placed") == ("False", "PartiallyPlaced")
    assert [item.name for item in of_pool(result).unplaced] == ["m"]


def test_the_remedy_is_reported_with_the_reason() -> None:
    result = statuses(decided_round([pool(), model(minReplicas=3)]))
    (unplaced,) = of_pool(result).unplaced
    assert unplaced.remedy.startswith("replicas 3 → 2")
    for status in (of_model(result), of_pool(result)):
        assert f"It would fit with: {unplaced.remedy}." in condition_of(status, "Placed").message


def test_nothing_desired_and_nothing_running_is_as_requested() -> None:
    zero = of_model(statuses(decided_round([pool(), model(minReplicas=0)])))
    assert described(zero, "Ready") == ("True", "ScaledToZero")
    result = statuses(decided_round([pool(suspend=True), model()]))
    assert described(of_model(result), "Ready") == ("False", "Suspended")
    assert described(of_model(result), "Stalled")[0] == "False"
    assert described(of_pool(result), "Ready") == ("False", "Suspended")
    assert of_pool(result).servers == ()


def test_an_invalid_resource_says_so_and_keeps_what_serves() -> None:
    resources = [pool(), model()]
    served = statuses(decided_round(resources, [report("p-0", loaded("m"))]))
    edited = [pool(), model(generation=2)]
    problem = Problem("f.yaml", "InferenceModel default/m", "spec.version", "is older than what serves")
    still = {"InferenceModel default/m"}
    registered = decided_round(edited, [report("p-0", loaded("m"))], served, [problem], still, LATER)
    status = of_model(statuses(registered))
    assert described(status, "Valid") == ("False", "InvalidSpec")
    assert described(status, "Ready")[0] == "False"
    assert described(status, "Stalled") == ("True", "InvalidSpec")
    assert described(status, "Loaded") == ("True", "Loaded")
    assert (
        condition_of(status, "Valid").message
        == "spec.version: is older than what serves; what it said before is still served"
    )
    assert status.placement == of_model(served).placement
    assert status.observed_generation == 2


def test_a_model_without_its_pool_says_which() -> None:
    lost = decided_round([model(poolRef={"name": "q"})])
    status = of_model(statuses(lost))
    assert described(status, "Stalled") == ("True", "UnknownPool")
    assert "no ServingPool 'q' in namespace default" in condition_of(status, "Valid").message


def test_an_ensemble_with_a_broken_graph_is_invalid() -> None:
    broken = Problem("", "Ensemble default/e", "spec.steps[0].model", "there is no model 'z'")
    result = statuses(decided_round([pool(), ensemble("e", {"model": "z"})], problems=[broken]))
    assert described(of_ensemble(result), "Valid") == ("False", "InvalidGraph")


def test_a_model_without_a_footprint_names_the_field_to_set() -> None:
    resources = [pool(), model(footprint={}), model("sized"), model("cpu", footprint={"device": "CPU"})]
    result = statuses(decided_round(resources))
    message = condition_of(of_model(result), "Placed").message
    assert "GPU 0; it has that GPU for itself" in message
    assert "spec.footprint.gpuMemory" in message
    assert "spec.footprint.device: CPU" in message
    assert "for itself" not in condition_of(of_model(result, "sized"), "Placed").message
    assert "CPU" in condition_of(of_model(result, "cpu"), "Placed").message
    footprints = [of_model(result, name).footprint for name in ("m", "sized", "cpu")]
    assert [(footprint.gpu_memory, footprint.gpus) for footprint in footprints if footprint] == [
        (None, 1),
        (4 * GIB, 0),
        (None, 0),
    ]


def test_what_no_one_sized_and_finds_no_gpu_names_the_field_to_declare() -> None:
    status = of_model(statuses(decided_round([pool(), model(minReplicas=3, footprint={})])))
    assert described(status, "Placed") == ("False", "PartiallyPlaced")
    assert "footprint.gpuMemory would tell" in condition_of(status, "Placed").message
