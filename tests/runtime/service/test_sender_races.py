"""Models whose threads send last responses in the very moment in which `execute` returns."""

import asyncio

import pytest
from tests.runtime.service.conftest import CONFIG, ask, responses

THREAD = 'parameters { key: "ISOLATION" value { string_value: "thread" } }'
DECOUPLED = "model_transaction_policy { decoupled: true }"
REQUESTS, AT_A_TIME = 600, 16
# Threads that are there already send as soon as a request is known, and `execute` returns as soon as they may.
MODEL = """
import queue, sys, threading
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def initialize(self, args):
        sys.setswitchinterval(1e-5)
        self.work = queue.SimpleQueue()
        for _ in range(4):
            threading.Thread(target=self.run, daemon=True).start()

    def execute(self, requests):
        for request in requests:
            begun = threading.Event()
            self.work.put((request, request.get_response_sender(), begun))
            begun.wait()

    def run(self):
        while True:
            request, sender, begun = self.work.get()
            output = pb_utils.Tensor("Y", request.inputs()[0].as_numpy() * 2)
            begun.set()
            sender.send(pb_utils.InferenceResponse([output]), pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
"""


@pytest.mark.parametrize("decoupled", ["", DECOUPLED], ids=["one answer", "decoupled"])
@pytest.mark.parametrize("isolation", ["", THREAD], ids=["process", "thread"])
async def test_every_answer_of_every_thread_arrives(repository, serve, isolation, decoupled):
    repository.write("m", {"1/model.py": MODEL}, CONFIG + isolation + decoupled)
    plane = await serve()
    await plane.load("m", None, {})
    turns = iter(range(REQUESTS))

    async def client() -> None:
        for number in turns:
            async for response in responses(plane, ask("m", float(number))):
                assert response.error is None, response.error
                assert float(response.outputs[0].array[0, 0]) == 2 * number

    await asyncio.gather(*[client() for _ in range(AT_A_TIME)])
