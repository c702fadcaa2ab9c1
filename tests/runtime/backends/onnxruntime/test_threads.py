"""ONNX Runtime's threads where the process may use less than the machine."""

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import onnxruntime as ort
import pytest
from tests.runtime.backends.onnxruntime.graphs import ADD_SUB, add_sub
from tests.runtime.backends.requests import parameter

from argosy_runtime.backends.onnxruntime import options

SESSIONS = """
import os
from unittest import mock
import onnxruntime as ort
from tritonclient.grpc.model_config_pb2 import ModelConfig
from argosy_runtime.backends.onnxruntime import options

with mock.patch.object(options, "cpu_limit", lambda: {limit}):
    before = len(os.listdir("/proc/self/task"))
    kept = []
    for _ in range(4):
        kept.append(ort.InferenceSession({path!r}, options.session_options(ModelConfig()), ["CPUExecutionProvider"]))
    print(len(os.listdir("/proc/self/task")) - before)
"""


@pytest.mark.parametrize("limit", [1, 3])
def test_all_sessions_share_no_more_threads_than_the_limit(tmp_path: Any, limit: int) -> None:
    path = tmp_path / "model.onnx"
    add_sub(path)
    code = SESSIONS.format(limit=limit, path=str(path))
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert int(ran.stdout) < limit, "who runs a session is one of them"


@pytest.mark.parametrize(
    ("limit", "settings", "expected"),
    [
        (2, {}, (2, 2)),
        (2, {"intra_op_thread_count": "5"}, (5, 2)),
        (None, {}, (0, 0)),
        (None, {"inter_op_thread_count": "5"}, (0, 5)),
    ],
)
def test_without_a_pool_every_session_has_the_limit_or_its_model_s(
    model_folder: Callable[[str], Any],
    monkeypatch: pytest.MonkeyPatch,
    limit: int | None,
    settings: dict[str, str],
    expected: tuple[int, int],
) -> None:
    monkeypatch.setattr(options, "cpu_limit", lambda: limit)
    monkeypatch.setattr(options, "_has_pool", lambda limit: False)
    config = model_folder(ADD_SUB + "".join(parameter(*item) for item in settings.items())).config
    made: ort.SessionOptions = options.session_options(config)
    assert (made.intra_op_num_threads, made.inter_op_num_threads) == expected
    assert made.use_per_session_threads
