"""Coroutines of plain models: several batches at a time, up to a limit."""

import asyncio

import pytest
from tests.runtime.service.conftest import CONFIG, ask, infer, value
from tests.waiting import until

from argosy_runtime.errors import ServingError

THREAD = 'parameters { key: "ISOLATION" value { string_value: "thread" } }'
both = pytest.mark.parametrize("isolation", ["", THREAD], ids=["process", "thread"])
ALONE = CONFIG.replace("dynamic_batching { }", "")
# Answers with the largest number of batches that ran at a time, once as many as X have begun or a moment is over.
MODEL = """
import asyncio
import numpy as np
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def initialize(self, args):
        self.running = self.most = self.begun = 0

    async def execute(self, requests):
        self.begun += 1
        self.running += 1
        self.most = max(self.most, self.running)
        wanted = requests[0].inputs()[0].as_numpy()[0, 0]
        for _ in range(200):
            if self.begun >= wanted:
                break
            await asyncio.sleep(0.005)
        self.running -= 1
        if wanted < 0:
            raise ValueError("less than none")
        y = pb_utils.Tensor("Y", np.full((1, 1), self.most, np.float32))
        return [pb_utils.InferenceResponse([y]) for _ in requests]
"""


def limit(most: object) -> str:
    """Return the parameter."""
    return f'parameters {{ key: "MAX_CONCURRENT_BATCHES" value {{ string_value: "{most}" }} }}'


@both
async def test_batches_overlap_up_to_the_limit(repository, serve, isolation):
    repository.write("m", {"1/model.py": MODEL}, ALONE + isolation + limit(3))
    plane = await serve()
    await plane.load("m", None, {})
    answers = await asyncio.gather(*(value(plane, "m", 3) for _ in range(12)))
    assert max(answers) == 3
    statistics = plane.statistics("m", "").model_stats[0]
    assert (statistics.inference_count, statistics.execution_count) == (12, 12)
    assert statistics.inference_stats.success.count == 12
    assert statistics.inference_stats.compute_infer.count == 12
    assert plane.registry.find("m").running == 0


@both
async def test_without_the_parameter_batches_run_one_after_another(repository, serve, isolation):
    repository.write("m", {"1/model.py": MODEL.replace("range(200)", "range(5)")}, ALONE + isolation)
    plane = await serve()
    await plane.load("m", None, {})
    assert set(await asyncio.gather(*(value(plane, "m", 9) for _ in range(4)))) == {1}


@both
async def test_one_batch_that_fails_is_its_own(repository, serve, isolation):
    repository.write("m", {"1/model.py": MODEL}, ALONE + isolation + limit(4))
    plane = await serve()
    await plane.load("m", None, {})
    answers = await asyncio.gather(*(value(plane, "m", x) for x in (-1, 2, 2, -1, 2)), return_exceptions=True)
    failed = [isinstance(answer, ServingError) for answer in answers]
    assert failed == [True, False, False, True, False]
    assert "ValueError: less than none" in answers[0].message
    with pytest.raises(ServingError, match="less than none"):
        await infer(plane, ask("m", -1.0))


@both
async def test_wrong_answers_of_a_coroutine_are_errors(repository, serve, isolation):
    source = MODEL.replace("return [pb_utils.InferenceResponse([y]) for _ in requests]", "return [y]")
    repository.write("m", {"1/model.py": source}, ALONE + isolation + limit(2))
    plane = await serve()
    await plane.load("m", None, {})
    with pytest.raises(ServingError, match="Expected an 'InferenceResponse' object in the execute function return"):
        await value(plane, "m", 1)


@both
async def test_an_unload_answers_what_runs(repository, serve, isolation):
    source = MODEL.replace("self.begun >= wanted", "False")
    repository.write("m", {"1/model.py": source}, ALONE + isolation + limit(2))
    plane = await serve()
    await plane.load("m", None, {})
    requested = [asyncio.create_task(value(plane, "m", 1)) for _ in range(4)]
    await until(lambda: plane.registry.find("m").running)
    await plane.unload("m", False)
    assert max(await asyncio.gather(*requested)) == 2


@pytest.mark.parametrize("most", ["0", "many", "-2"])
async def test_a_wrong_limit_is_refused(repository, serve, most):
    repository.write("m", {"1/model.py": MODEL}, ALONE + limit(most))
    plane = await serve()
    with pytest.raises(ServingError, match="parameter 'MAX_CONCURRENT_BATCHES' is"):
        await plane.load("m", None, {})


async def test_a_limit_without_a_coroutine_is_reported(repository, serve, caplog):
    repository.add("m", config=CONFIG + limit(2))
    plane = await serve()
    await plane.load("m", None, {})
    assert await value(plane, "m", 3) == 3
    assert "MAX_CONCURRENT_BATCHES is without effect: execute of 'm_0' is no coroutine" in caplog.text
