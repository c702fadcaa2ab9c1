"""The protobuf modules of NVIDIA's client come without the client, which is there all the same for who asks."""

import subprocess
import sys

import pytest

LATER = "import argosy_runtime, sys; assert 'tritonclient.grpc' in sys.modules; "


@pytest.mark.parametrize(
    "code",
    [
        "import argosy_runtime.server, sys; assert 'grpc' not in sys.modules",
        "import argosy_runtime.execution.process.worker, sys; assert 'grpc' not in sys.modules",
        LATER + "import tritonclient.grpc as t; t.InferenceServerClient('127.0.0.1:1').close()",
        LATER + "from tritonclient.grpc import *; InferInput('a', [1], 'FP32')",
        LATER + "import tritonclient.grpc.aio as t; t.InferInput('a', [1], 'FP32')",
        LATER + "from tritonclient.grpc import service_pb2 as a, InferInput; import tritonclient.grpc as t; "
        "assert t.service_pb2 is a; assert t.InferInput is InferInput",
        LATER + "import tritonclient.grpc as t; assert not hasattr(t, 'nothing of the kind')",
        "import tritonclient.grpc as t, argosy_runtime, sys; assert sys.modules['tritonclient.grpc'] is t",
    ],
)
def test_in_a_new_process(code: str) -> None:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
