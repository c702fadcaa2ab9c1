"""A model calls the server with values as it has them: bytes for names, numpy's numbers."""

import pytest
from tests.runtime.service.conftest import value

THREAD = 'parameters { key: "ISOLATION" value { string_value: "thread" } }'
# Any wrong argument is an exception here; whatever is right must have come to an answer.
CALLS = """
name = np.array([b"other"], np.object_)[0]
call = pb_utils.InferenceRequest(model_name=name, request_id=b"7", requested_output_names=[b"Y"],
    timeout=np.int64(10), inputs=[pb_utils.Tensor(b"X", x)])
y = call.exec().output_tensors()[0].as_numpy()
assert pb_utils.is_model_ready(b"other", b"1")
pb_utils.Logger.log_info(b"a line")
for wrong in (lambda: pb_utils.InferenceRequest(model_name=3), lambda: pb_utils.unload_model(3)):
    try:
        wrong()
    except TypeError:
        continue
    raise AssertionError("taken")
"""


@pytest.mark.parametrize("isolation", ["", THREAD], ids=["process", "thread"])
async def test_a_model_may_call_with_bytes_and_numpy_numbers(repository, serve, isolation):
    repository.add("other", execute="y = 2 * x")
    repository.add("m", initialize="global np; import numpy as np", execute=CALLS)
    config = repository.path / "m" / "config.pbtxt"
    config.write_text(config.read_text() + isolation)
    plane = await serve()
    await plane.load("other", None, {})
    await plane.load("m", None, {})
    assert await value(plane, "m", 3) == 6
