"""Models of every kind whose processes are killed: sequences, callers, limited and cached ones, and streams."""

from pathlib import Path

NUMBER = 'name: "{name}" data_type: TYPE_INT32 dims: [ 1 ]'
SUM = '''
"""Answers the sum of its sequence and its process; works for X milliseconds where X is 1000 or more."""

import os
import time

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        self.name = args["model_name"]
        self.sums = {{}}

    def execute(self, requests):
        return [self._add(request) for request in requests]

    def _add(self, request):
        sequence, x = self._scalar(request, "CORRID"), self._scalar(request, "X")
        if self._scalar(request, "START"):
            self.sums[sequence] = 0
        if self._scalar(request, "READY"):
            self.sums[sequence] += x
            if x >= 1000:
                open("{marks}/" + self.name, "w").close()
                time.sleep(x / 1000)
        values = {{"SUM": self.sums.get(sequence, 0), "PID": os.getpid()}}
        tensors = [pb_utils.Tensor(name, np.array([[value]], np.int32)) for name, value in values.items()]
        return pb_utils.InferenceResponse(tensors)

    def _scalar(self, request, name):
        return int(pb_utils.get_input_tensor_by_name(request, name).as_numpy().reshape(-1)[0])
'''
CALLER = '''
"""Sends a request of a sequence to a model, and answers as it does."""

import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        return [self._call(request) for request in requests]

    def _call(self, request):
        inputs = [pb_utils.get_input_tensor_by_name(request, "X")]
        names, flags, sequence = ["SUM", "PID"], request.flags(), request.correlation_id()
        call = pb_utils.InferenceRequest("", sequence, inputs, names, "{model}", -1, flags)
        answer = call.exec()
        if answer.has_error():
            return pb_utils.InferenceResponse(error=answer.error())
        tensors = [pb_utils.get_output_tensor_by_name(answer, name) for name in names]
        return pb_utils.InferenceResponse(tensors)
'''
STREAM = '''
"""Sends 0, 1, 2 … for ever where X is 1000 or more, else X responses."""

import os
import time

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            x = int(pb_utils.get_input_tensor_by_name(request, "X").as_numpy().reshape(-1)[0])
            sender = request.get_response_sender()
            for number in range(x):
                if sender.is_cancelled():
                    break
                values = {{"SUM": number, "PID": os.getpid()}}
                tensors = [pb_utils.Tensor(name, np.array([[value]], np.int32)) for name, value in values.items()]
                sender.send(pb_utils.InferenceResponse(tensors))
                time.sleep(0.01)
            sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
'''
_TENSORS = f"""
max_batch_size: 4
input [ {{ {NUMBER.format(name="X")} }} ]
output [ {{ {NUMBER.format(name="SUM")} }}, {{ {NUMBER.format(name="PID")} }} ]
"""
_FLAG = '{{ name: "{kind}" control [ {{ kind: CONTROL_SEQUENCE_{kind} int32_false_true: [ 0, 1 ] }} ] }}'
_CONTROLS = f"""
  control_input [
    {_FLAG.format(kind="START")},
    {_FLAG.format(kind="READY")},
    {{ name: "CORRID" control [ {{ kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_UINT64 }} ] }}
  ]
"""
STRATEGIES = {"direct": "direct { }", "oldest": "oldest { max_candidate_sequences: 4 }"}
SHARED = 'rate_limiter { resources [ { name: "R" count: 1 } ] }'
# Models that are no sequences run the same program, with these constant inputs.
_PLAIN = SUM.replace('self._scalar(request, "CORRID")', "0").replace('self._scalar(request, "READY")', "True")
PLAIN = _PLAIN.replace('self._scalar(request, "START")', "True")
"""The same program for models without sequences."""


def write(folder: Path, marks: Path) -> Path:
    """Write the repository. A model at slow work leaves a file of its name in `marks`."""
    for name, strategy in STRATEGIES.items():
        batching = f"sequence_batching {{ max_sequence_idle_microseconds: 60000000 {strategy} {_CONTROLS} }}"
        _python(folder / name, SUM.format(marks=marks), batching)
        _python(folder / f"call_{name}", CALLER.format(model=name), count=3)
        _ensemble(folder / f"chain_{name}", name)
    for name in ("limited_a", "limited_b"):
        _python(folder / name, PLAIN.format(marks=marks), group=SHARED)
    _python(folder / "cached", PLAIN.format(marks=marks), "response_cache { enable: true }")
    _python(folder / "plain", PLAIN.format(marks=marks), "dynamic_batching { }")
    _python(folder / "stream", STREAM.format(), "model_transaction_policy { decoupled: true }")
    return folder


def _python(folder: Path, program: str, more: str = "", group: str = "", count: int = 1) -> None:
    (folder / "1").mkdir(parents=True)
    (folder / "1" / "model.py").write_text(program)
    config = f'backend: "python" {_TENSORS} instance_group [ {{ kind: KIND_CPU count: {count} {group} }} ] {more}'
    (folder / "config.pbtxt").write_text(config)


def _ensemble(folder: Path, model: str) -> None:
    (folder / "1").mkdir(parents=True)
    outputs = " ".join(f'output_map {{ key: "{name}" value: "{name}" }}' for name in ("SUM", "PID"))
    maps = f'input_map {{ key: "X" value: "X" }} {outputs}'
    step = f'ensemble_scheduling {{ step [ {{ model_name: "{model}" model_version: -1 {maps} }} ] }}'
    (folder / "config.pbtxt").write_text(f'platform: "ensemble" {_TENSORS} {step}')
