"""Tensors have one owner: what a model or a step does to its arrays changes no other's."""

import asyncio
import io

import numpy as np
import pytest
import torch
from tests.runtime.service.conftest import CONFIG, ask, infer, responses, value

from argosy_runtime.messages import InferRequest, Tensor

pytestmark = pytest.mark.filterwarnings("ignore:.torch.jit.:DeprecationWarning")
THREAD = 'parameters { key: "ISOLATION" value { string_value: "thread" } }'
DECOUPLED = "model_transaction_policy { decoupled: true }"
ROWS = 4096
ROW = np.arange(ROWS, dtype=np.float32)
# Answers every request out of one array, which it fills again.
REUSES = f"""
import numpy as np
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def initialize(self, args):
        self.out = np.empty((1, {ROWS}), np.float32)

    def execute(self, requests):
        answers = []
        for request in requests:
            self.out[:] = request.inputs()[0].as_numpy()
            ANSWER
        SPOIL
        RETURN
"""
SENDS = "request.get_response_sender().send(pb_utils.InferenceResponse([pb_utils.Tensor('Y', self.out)]), flags=1)"
REUSE = {
    "returned": (
        ("answers.append(pb_utils.InferenceResponse([pb_utils.Tensor('Y', self.out)]))", "", "return answers")
    ),
    "sent": (SENDS, "self.out[:] = -1", "return None"),
}


def wide(name: str, number: float) -> InferRequest:
    """Return a request of one row of the same number."""
    return InferRequest(name, {"X": Tensor("X", "FP32", np.full((1, ROWS), number, np.float32))})


@pytest.mark.parametrize("isolation", ["", THREAD], ids=["process", "thread"])
@pytest.mark.parametrize(("how", "decoupled"), [("returned", ""), ("sent", ""), ("sent", DECOUPLED)])
async def test_a_model_may_use_its_output_array_again(repository, serve, isolation, decoupled, how):
    source = REUSES
    for word, code in zip(("ANSWER", "SPOIL", "RETURN"), REUSE[how], strict=True):
        source = source.replace(word, code)
    # Alone in a batch where they are returned: the array of the others would be the same one.
    batching = CONFIG if how == "sent" else CONFIG.replace("dynamic_batching { }", "").replace("size: 8", "size: 1")
    config = batching.replace("[ 1 ]", f"[ {ROWS} ]") + isolation + decoupled
    repository.write("m", {"1/model.py": source}, config)
    plane = await serve()
    await plane.load("m", None, {})

    async def client(number: int) -> None:
        async for response in responses(plane, wide("m", float(number))):
            assert response.error is None, response.error
            if response.outputs:
                assert set(response.outputs[0].array.ravel().tolist()) == {float(number)}

    await asyncio.gather(*[client(number) for number in range(200)])


class Centered(torch.nn.Module):
    """Takes the mean off its input, in place."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.sub_(x.mean(1, keepdim=True))


class Counting(torch.nn.Module):
    """Answers with a buffer of its own, one more each time."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", torch.zeros(1, ROWS))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.count.add_(1)


def script(module: torch.nn.Module) -> bytes:
    """Return the module as TorchScript."""
    file = io.BytesIO()
    torch.jit.save(torch.jit.script(module), file)
    return file.getvalue()


TORCH = f"""
backend: "pytorch"
max_batch_size: 8
input [ {{ name: "X" data_type: TYPE_FP32 dims: [ {ROWS} ] }} ]
output [ {{ name: "Y" data_type: TYPE_FP32 dims: [ {ROWS} ] }} ]
"""
STEPS = f"""
platform: "ensemble"
max_batch_size: 8
input [ {{ name: "X" data_type: TYPE_FP32 dims: [ {ROWS} ] }} ]
output [ {{ name: "RAW" data_type: TYPE_FP32 dims: [ {ROWS} ] }}, {{ name: "A" data_type: TYPE_FP32 dims: [ {ROWS} ] }},
  {{ name: "B" data_type: TYPE_FP32 dims: [ {ROWS} ] }} ]
ensemble_scheduling {{ step [
  {{ model_name: "source" model_version: -1
    input_map {{ key: "X" value: "X" }} output_map {{ key: "Y" value: "RAW" }} }},
  {{ model_name: "in_place" model_version: -1
    input_map {{ key: "X" value: "RAW" }} output_map {{ key: "Y" value: "A" }} }},
  {{ model_name: "reader" model_version: -1
    input_map {{ key: "X" value: "RAW" }} output_map {{ key: "Y" value: "B" }} }}
] }}
"""
WRITES = "x = x.copy() if not x.flags.writeable else x; y = x; x -= x.mean()"


@pytest.mark.parametrize(
    ("writer", "source", "size"),
    [("torch", "", 1 << 15), ("torch", THREAD, ROWS), ("python", "", 1 << 15), ("python", THREAD, ROWS)],
    ids=["torch behind a process", "torch behind a thread", "python behind a process", "python behind a thread"],
)
async def test_a_step_that_works_inplace_changes_nothing_of_the_others(repository, serve, writer, source, size):
    wide_config = CONFIG.replace("[ 1 ]", f"[ {size} ]").replace("dynamic_batching { }", "")
    repository.add("source", execute="y = x + 1", config=wide_config + source)
    repository.add("reader", execute="y = x * 1", config=wide_config + THREAD)
    if writer == "torch":
        repository.write("in_place", {"1/model.pt": script(Centered())}, TORCH.replace(str(ROWS), str(size)))
    else:
        repository.add("in_place", execute=WRITES, config=wide_config + THREAD)
    repository.write("e", {"1/.keep": ""}, STEPS.replace(str(ROWS), str(size)))
    plane = await serve()
    for name in ("source", "in_place", "reader", "e"):
        await plane.load(name, None, {})
    inputs = np.arange(size, dtype=np.float32).reshape(1, -1)
    request = InferRequest("e", {"X": Tensor("X", "FP32", inputs)}, requested_outputs=("RAW", "A", "B"))
    raw, changed, read = [output.array.copy() for output in (await infer(plane, request)).outputs]
    assert np.array_equal(raw[0], np.arange(size) + 1)
    assert np.array_equal(read, raw)
    assert abs(float(changed.mean())) < 1
    assert np.array_equal(inputs[0], np.arange(size)), "what the client has"


async def test_a_torch_model_may_answer_with_a_buffer_of_its_own(repository, serve):
    repository.write("m", {"1/model.pt": script(Counting())}, TORCH.replace("size: 8", "size: 1"))
    plane = await serve()
    await plane.load("m", None, {})
    first = (await infer(plane, wide("m", 0.0))).outputs[0]
    second = (await infer(plane, wide("m", 0.0))).outputs[0]
    assert (float(first.array[0, 0]), float(second.array[0, 0])) == (1, 2)


async def test_what_a_model_hands_to_another_is_its_own_again_at_once(repository, serve):
    code = """
    calls, out = [], np.empty((1, 1), np.float32)
    for number in range(20):
        out[:] = number
        tensor = pb_utils.Tensor("X", out)
        calls.append(pb_utils.InferenceRequest(model_name="other", inputs=[tensor], requested_output_names=["Y"]))
        calls[-1] = calls[-1].exec(decoupled=True)
    out[:] = -1
    y = sum(next(call).output_tensors()[0].as_numpy() for call in calls)
    """
    repository.add("other")
    repository.add("m", initialize="global np; import numpy as np", execute=code, config=CONFIG + THREAD)
    plane = await serve()
    await plane.load("other", None, {})
    await plane.load("m", None, {})
    assert (await infer(plane, ask("m", 1.0))).outputs[0].array.tolist() == [[sum(range(20))]]
    assert await value(plane, "m") == sum(range(20))
