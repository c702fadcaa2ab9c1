"""The models of a soak: each answers twice its input, or fails in a way of its own."""

from pathlib import Path
from typing import Final

SOUND: Final = ("double", "threaded", "chain", "cached")
"""Models that never fail; the server caches responses of the last one."""
SUM: Final = "sum"
"""A model of sequences, which adds up the rows of each; the server keeps the sum."""
SUM_SIZE: Final = 4
"""Numbers of its rows."""
FRAIL: Final = "frail"
"""A model whose process ends at a negative input."""
STREAM: Final = "stream"
"""A decoupled model, which answers as many times as its input says, by 0, 1, 2 …"""
PASSING: Final = "passing"
"""A model that is loaded and unloaded over and over."""

_IO: Final = """
max_batch_size: 8
input [ { name: "X" data_type: TYPE_FP32 dims: [ -1 ] } ]
output [ { name: "Y" data_type: TYPE_FP32 dims: [ -1 ] } ]
"""
_PYTHON: Final = 'backend: "python"' + _IO + "instance_group [ { kind: KIND_CPU count: 1 } ]\n"
_BATCHED: Final = _PYTHON + "dynamic_batching { max_queue_delay_microseconds: 200 }\n"
_CACHED: Final = _BATCHED + "response_cache { enable: true }\n"
_SEQUENCES: Final = f"""sequence_batching {{
  max_sequence_idle_microseconds: 2000000
  oldest {{ max_candidate_sequences: 4 }}
  state [ {{ input_name: "BEFORE" output_name: "AFTER" data_type: TYPE_FP32 dims: [ {SUM_SIZE} ]
    initial_state {{ name: "zero" data_type: TYPE_FP32 dims: [ {SUM_SIZE} ] zero_data: true }} }} ]
}}
"""
_THREAD: Final = 'parameters { key: "ISOLATION" value { string_value: "thread" } }\n'
_DECOUPLED: Final = "model_transaction_policy { decoupled: true }\n"
_STEP: Final = """step {{ model_name: "{}" model_version: -1
  input_map {{ key: "X" value: "{}" }} output_map {{ key: "Y" value: "{}" }} }}
"""
_STEPS: Final = (("threaded", "X", "M"), ("half", "M", "H"), ("double", "H", "Y"))
_CHAIN: Final = f"""platform: "ensemble" {_IO}
ensemble_scheduling {{ {"".join(_STEP.format(*step) for step in _STEPS)} }}
"""
_MODEL: Final = """
import os
import numpy as np
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        return [self.answer(pb_utils.get_input_tensor_by_name(request, "X").as_numpy()) for request in requests]

    def answer(self, x):
        {check}
        return pb_utils.InferenceResponse([pb_utils.Tensor("Y", x * np.float32({factor}))])
"""
_SUM: Final = """
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        return [self.answer(*(pb_utils.get_input_tensor_by_name(request, name).as_numpy() for name in ("X", "BEFORE")))
                for request in requests]

    def answer(self, x, before):
        return pb_utils.InferenceResponse([pb_utils.Tensor(name, x + before) for name in ("Y", "AFTER")])
"""
_STREAM: Final = """
import numpy as np
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            sender = request.get_response_sender()
            count = int(pb_utils.get_input_tensor_by_name(request, "X").as_numpy()[0, 0])
            for number in range(count):
                if request.is_cancelled():
                    break
                sender.send(pb_utils.InferenceResponse([pb_utils.Tensor("Y", np.full((1, 1), number, np.float32))]))
            sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
"""


def write_repository(folder: Path) -> None:
    """Write every model's files."""
    frail = _MODEL.format(factor=2, check="if x.min() < 0: os._exit(1)")
    plain = _MODEL.format(factor=2, check="pass")
    _write(folder / "double", _BATCHED, plain)
    _write(folder / "threaded", _BATCHED + _THREAD, plain)
    _write(folder / "cached", _CACHED, plain)
    _write(folder / SUM, _PYTHON + _SEQUENCES, _SUM)
    _write(folder / "half", _PYTHON, _MODEL.format(factor=0.5, check="pass"))
    _write(folder / FRAIL, _PYTHON, frail)
    _write(folder / PASSING, _PYTHON, plain)
    _write(folder / STREAM, _PYTHON + _DECOUPLED, _STREAM)
    _write(folder / "chain", _CHAIN, None)


def _write(folder: Path, config: str, source: str | None) -> None:
    (folder / "1").mkdir(parents=True)
    (folder / "config.pbtxt").write_text(config)
    if source is not None:
        (folder / "1" / "model.py").write_text(source)
