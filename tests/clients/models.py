"""Models that tests/models lacks: BF16, which NVIDIA's Python backend has not, and a slow one."""

from pathlib import Path

HALF = '''
"""Answers half of its input."""

import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        return [self._half(request) for request in requests]

    def _half(self, request):
        array = pb_utils.get_input_tensor_by_name(request, "IN").as_numpy()
        return pb_utils.InferenceResponse([pb_utils.Tensor("OUT", array / array.dtype.type(2))])
'''
HALF_CONFIG = """
backend: "python"
max_batch_size: 8
input [ { name: "IN" data_type: TYPE_BF16 dims: [ 3 ] } ]
output [ { name: "OUT" data_type: TYPE_BF16 dims: [ 3 ] } ]
"""
SLOW = '''
"""Answers its input after that many milliseconds."""

import time

import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        return [self._wait(request) for request in requests]

    def _wait(self, request):
        array = pb_utils.get_input_tensor_by_name(request, "IN").as_numpy()
        time.sleep(int(array[0]) / 1000)
        return pb_utils.InferenceResponse([pb_utils.Tensor("OUT", array)])
'''
SLOW_CONFIG = """
backend: "python"
max_batch_size: 0
input [ { name: "IN" data_type: TYPE_INT32 dims: [ 1 ] } ]
output [ { name: "OUT" data_type: TYPE_INT32 dims: [ 1 ] } ]
"""


def write_models(repository: Path) -> None:
    """Write the models `half` and `slow` below `repository`."""
    for name, source, config in (("half", HALF, HALF_CONFIG), ("slow", SLOW, SLOW_CONFIG)):
        (repository / name / "1").mkdir(parents=True)
        (repository / name / "1" / "model.py").write_text(source)
        (repository / name / "config.pbtxt").write_text(config)
