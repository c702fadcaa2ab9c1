"""Steps of ensembles that name no version are divided among the versions of their models, one for a request."""

from collections import Counter

from tests.runtime.service.conftest import CONFIG, ask, infer, value
from tests.runtime.service.test_version_traffic import add, config, divide, versions_of

from argosy_runtime.dataplane import DataPlane

PIPELINE = """
platform: "ensemble"
max_batch_size: 8
input [ { name: "X" data_type: TYPE_FP32 dims: [ 1 ] } ]
output [ { name: "Y" data_type: TYPE_FP32 dims: [ 1 ] } ]
ensemble_scheduling { step [ %s ] }
"""
STEP = '{ model_name: "m" model_version: %d input_map { key: "X" value: "%s" } output_map { key: "Y" value: "%s" } }'


async def pipeline(repository, plane: DataPlane, *steps: str) -> None:
    """Load an ensemble of these steps."""
    repository.write("pipeline", {"1/.keep": ""}, PIPELINE % ", ".join(steps))
    await plane.load("pipeline", None, {})


async def test_an_ensembles_step_without_a_version_is_divided_and_a_pinned_one_is_not(repository, serve):
    add(repository, {1: 75, 2: 25})
    plane = await serve()
    await plane.load("m", None, {})
    await pipeline(repository, plane, STEP % (-1, "X", "Y"))
    assert await versions_of(plane, 8, "pipeline") == {1: 6, 2: 2}
    pipelined = plane.registry.find("pipeline")
    divide(repository, {1: 0, 2: 100})
    await plane.divide("m")
    assert await versions_of(plane, 8, "pipeline") == {2: 8}
    assert plane.registry.find("pipeline").statistics is pipelined.statistics
    await pipeline(repository, plane, STEP % (1, "X", "Y"))
    assert await versions_of(plane, 8, "pipeline") == {1: 8}


async def test_one_request_of_an_ensemble_meets_one_version_of_a_model_in_all_of_its_steps(repository, serve):
    for version in (1, 2):
        execute = f"y = x * 10 + {version}"
        repository.add("m", execute=execute, config=config({1: 50, 2: 50}), version=version)
    plane = await serve()
    await plane.load("m", None, {})
    await pipeline(repository, plane, STEP % (-1, "X", "between"), STEP % (-1, "between", "Y"))
    answers = [int(await value(plane, "pipeline", 0)) for _ in range(8)]
    assert Counter(answers) == {11: 4, 22: 4}


async def test_a_step_is_divided_by_the_keys_of_the_ensembles_request(repository, serve):
    add(repository, {1: 50, 2: 50}, sticky=[{"parameter": "user"}])
    plane = await serve()
    await plane.load("m", None, {})
    await pipeline(repository, plane, STEP % (-1, "X", "Y"))
    for number in range(6):
        fields = {"parameters": {"user": f"user-{number}"}}
        direct = (await infer(plane, ask("m", **fields))).outputs[0].array[0, 0]
        assert {(await infer(plane, ask("pipeline", **fields))).outputs[0].array[0, 0] for _ in range(3)} == {direct}


async def test_a_version_that_does_not_fit_an_ensemble_gets_none_of_its_requests(repository, serve, caplog):
    add(repository, {1: 50, 2: 50})
    own = CONFIG.replace('name: "Y" data_type: TYPE_FP32', 'name: "Y" data_type: TYPE_FP64')
    repository.write("m", {"2/argosy.pbtxt": own}, config({1: 50, 2: 50}))
    plane = await serve()
    await plane.load("m", None, {})
    await pipeline(repository, plane, STEP % (-1, "X", "Y"))
    assert await versions_of(plane, 4, "pipeline") == {1: 4}
    assert "ensemble 'pipeline' sends no requests to version 2 of 'm'" in caplog.text
    divide(repository, {1: 0, 2: 100})
    await plane.divide("m")
    assert await versions_of(plane, 4, "pipeline") == {1: 4}, "a version without a weight is better than none"


async def test_a_running_models_calls_of_an_ensemble_are_divided(repository, serve):
    add(repository, {1: 50, 2: 50})
    call = """
        x = pb_utils.Tensor("X", x)
        asked = pb_utils.InferenceRequest(model_name="pipeline", requested_output_names=["Y"], inputs=[x])
        y = asked.exec().output_tensors()[0].as_numpy()
    """
    repository.add("caller", execute=call)
    plane = await serve()
    await plane.load("m", None, {})
    await pipeline(repository, plane, STEP % (-1, "X", "Y"))
    await plane.load("caller", None, {})
    assert await versions_of(plane, 4, "caller") == {1: 2, 2: 2}
