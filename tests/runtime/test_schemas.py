"""The protobuf modules of NVIDIA's client come without the client, which runs once one of its own names is read."""

import subprocess
import sys

import pytest

SCHEMA = (
    "import argosy_runtime, sys; from tritonclient.grpc import service_pb2 as a; assert 'grpc' not in sys.modules; "
)
READ = "assert a.ModelReadyRequest.FromString(a.ModelReadyRequest(name='m').SerializeToString()).name == 'm'"


@pytest.mark.parametrize(
    "code",
    [
        "import argosy_runtime.server, sys; assert 'grpc' not in sys.modules",
        "import argosy_runtime.execution.process.worker, sys; assert 'grpc' not in sys.modules",
        SCHEMA + " import tritonclient.grpc as t; t.InferenceServerClient('127.0.0.1:1').close()",
        SCHEMA + " from tritonclient.grpc import *; InferInput('a', [1], 'FP32')",
        SCHEMA + " import tritonclient.grpc.aio as t; t.InferInput('a', [1], 'FP32')",
        SCHEMA + " from tritonclient.grpc import InferInput; import tritonclient.grpc as t; "
        "assert t.service_pb2 is a; assert t.InferInput is InferInput",
        SCHEMA + " import tritonclient.grpc as t; assert not hasattr(t, 'nothing of the kind')",
        "import tritonclient.grpc as t, argosy_runtime, sys; assert sys.modules['tritonclient.grpc'] is t",
        # A release of protobuf that is older than the schemas, and one that has no such check.
        "import google.protobuf.runtime_version as r; r.MAJOR, r.OSS_MAJOR = 5, 5; " + SCHEMA + READ + "; "
        "from google.protobuf import runtime_version as now; assert now is r",
        "import sys; sys.modules['google.protobuf.runtime_version'] = None; " + SCHEMA + READ + "; "
        "assert 'google.protobuf.runtime_version' not in sys.modules",
        "import sys, argosy_runtime.schemas as s; a = [*sys.meta_path]; s.postpone_client(); assert sys.meta_path == a",
    ],
)
def test_in_a_new_process(code: str) -> None:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
