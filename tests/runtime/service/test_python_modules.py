"""A Python model's module as Python itself sees it: classes of other files, and processes that it spawns."""

import json

from tests.runtime.service.conftest import CONFIG, value

BASE = """
class Base:
    @staticmethod
    def auto_complete_config(config):
        config.add_input({"name": "X", "data_type": "TYPE_FP32", "dims": [1]})
        config.add_output({"name": "Y", "data_type": "TYPE_FP32", "dims": [1]})
        config.set_max_batch_size(4)
        return config

    def execute(self, requests):
        import triton_python_backend_utils as pb_utils

        outputs = [pb_utils.Tensor("Y", request.inputs()[0].as_numpy() * 2) for request in requests]
        return [pb_utils.InferenceResponse([output]) for output in outputs]
"""
INHERITED = "from base import Base\nclass TritonPythonModel(Base):\n    pass\n"
IMPORTED = BASE.replace("class Base", "class TritonPythonModel")
SPAWNS = """
import multiprocessing
import numpy as np
import triton_python_backend_utils as pb_utils
from helper import FACTOR

def work(x):
    return float(x) * FACTOR

class TritonPythonModel:
    def initialize(self, args):
        self.pool = multiprocessing.get_context("spawn").Pool(1)

    def execute(self, requests):
        answers = []
        for request in requests:
            x = request.inputs()[0].as_numpy()
            y = np.array(self.pool.map(work, x.ravel()), np.float32).reshape(x.shape)
            answers.append(pb_utils.InferenceResponse([pb_utils.Tensor("Y", y)]))
        return answers

    def finalize(self):
        self.pool.terminate()
"""


async def test_a_configuration_is_completed_by_a_method_of_a_base_class(repository, serve):
    config = 'backend: "python"'
    repository.write("m", {"1/base.py": BASE, "1/model.py": INHERITED}, config)
    repository.write(
        "n",
        {
            "1/base_n.py": IMPORTED,
            "1/model.py": "from base_n import TritonPythonModel as Other\nTritonPythonModel = Other\n",
        },
        config,
    )
    plane = await serve()
    for name in ("m", "n"):
        await plane.load(name, None, {})
        assert plane.model_config(name, "").max_batch_size == 4
        assert await value(plane, name, 3) == 6


async def test_a_model_may_spawn_a_function_of_its_own_file(repository, serve):
    files = {"1/other.py": SPAWNS, "1/helper.py": "FACTOR = 3\n"}
    repository.write("m", files, CONFIG + f"default_model_filename: {json.dumps('other.py')}")
    plane = await serve()
    await plane.load("m", None, {})
    assert await value(plane, "m", 3) == 9
