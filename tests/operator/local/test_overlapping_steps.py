"""`argosy up` with the real runtime: requests overlap in each step of an ensemble, though nothing declares it."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from tests.acceptance.running import REAL

MEETS = """
import time, uuid
from pathlib import Path

import numpy as np
import triton_python_backend_utils as pb_utils

FOLDER = Path(FOLDER_NAME)


class TritonPythonModel:
    def execute(self, requests):
        mine = FOLDER / uuid.uuid4().hex
        mine.touch()
        until = time.monotonic() + 20
        while len(list(FOLDER.iterdir())) < 2 and time.monotonic() < until:
            time.sleep(0.01)
        met = float(len(list(FOLDER.iterdir())))
        tensor = pb_utils.get_input_tensor_by_name(requests[0], "X").as_numpy()
        return [pb_utils.InferenceResponse([pb_utils.Tensor("Y", np.full_like(tensor, met))])]
"""


@pytest.mark.parametrize("any_up", [REAL], indirect=True)
def test_two_requests_are_in_a_step_at_once(
    workspace: Any, any_up: Callable[..., Any], documents: Callable[[str, int, str], str], pipe: str
) -> None:
    for source in ("first", "second"):
        meeting = workspace.root / f"in-{source}"
        meeting.mkdir()
        workspace.write_model(source, 1.0)
        (workspace.manifests / source / "model.py").write_text(MEETS.replace("FOLDER_NAME", repr(str(meeting))))
    workspace.write(documents("one", 1, "first"), documents("two", 1, "second"), pipe)
    run = any_up()
    run.until_ready("pipe")
    with ThreadPoolExecutor(2) as clients:
        assert list(clients.map(lambda value: run.infer("pipe", value), (1.0, 2.0))) == [2.0, 2.0]
