"""`argosy serve` with tritonserver's flags of its protocols: TLS, forwarded headers, closed groups."""

import json
import re
import ssl
import urllib.request
from http.client import HTTPException
from pathlib import Path

import numpy as np
import pytest
import tritonclient.grpc as grpc
import tritonclient.http as http
from tests.runtime.authority import Authority
from tests.serve.conftest import AddModel, Start
from tests.serve.process import PATIENCE_S, wait_until

PARAMETERS = Path(__file__).parents[1] / "models" / "parameters"


def _get(url: str, authority: Authority) -> str:
    trusting = ssl.create_default_context(cafile=str(authority.root))
    with urllib.request.urlopen(url, timeout=PATIENCE_S, context=trusting) as answer:
        return str(answer.read().decode())


def test_all_ports_speak_tls_and_take_a_renewed_certificate(serve: Start, add_model: AddModel, tmp_path: Path) -> None:
    add_model("echo")
    authority = Authority(tmp_path)
    certificate, key = authority.issue("served")
    flags = [f"--{port}-use-ssl=true" for port in ("http", "grpc", "metrics")]
    for port in ("http", "grpc"):
        flags += [f"--{port}-server-cert={certificate}", f"--{port}-server-key={key}"]
    server = serve(*flags)
    server.wait_for_ports()
    base = f"https://localhost:{server.ports['HTTP']}"
    wait_until(lambda: "ready" in server.text, server.log)
    assert json.loads(_get(f"{base}/v2", authority))["name"] == "argosy"
    metrics = f"https://localhost:{server.ports['Metrics']}/metrics"
    before = _get(metrics, authority)
    assert 'argosy_tls_reloads_total{port="http"} 0' in before
    tensor = grpc.InferInput("X", [1], "INT32")
    tensor.set_data_from_numpy(np.array([7], np.int32))
    address = f"localhost:{server.ports['GRPCInference']}"
    with grpc.InferenceServerClient(address, ssl=True, root_certificates=str(authority.root)) as client:
        assert client.infer("echo", [tensor]).as_numpy("Y").tolist() == [7]
        renewed = authority.issue("renewed", days=5)
        key.write_bytes(renewed[1].read_bytes())
        certificate.write_bytes(renewed[0].read_bytes())
        wait_until(lambda: 'argosy_tls_reloads_total{port="grpc"} 1' in _get(metrics, authority), server.log)
        assert client.infer("echo", [tensor]).as_numpy("Y").tolist() == [7]
    assert _get(metrics, authority) != before
    certificate.write_text("nothing")
    wait_until(lambda: "the certificate of the http port stays as it was" in server.text, server.log)
    assert json.loads(_get(f"{base}/v2", authority))["name"] == "argosy"
    server.process.terminate()
    assert server.process.wait(PATIENCE_S) == 0


def test_headers_become_parameters_that_a_python_model_reads(serve: Start, tmp_path: Path) -> None:
    server = serve(
        "--http-header-forward-pattern=^my-", "--grpc-header-forward-pattern=your", repository=PARAMETERS.parent
    )
    server.wait_until_ready()
    headers = {"My-Header": "1", "your-header": "2"}
    over_http = http.InferInput("IN", [1], "FP32")
    over_http.set_data_from_numpy(np.array([1], np.float32))
    with http.InferenceServerClient(f"127.0.0.1:{server.ports['HTTP']}") as client:
        answer = client.infer("parameters", [over_http], headers=dict(headers))
    assert json.loads(answer.as_numpy("PARAMETERS")[0]) == {"My-Header": "1"}
    over_grpc = grpc.InferInput("IN", [1], "FP32")
    over_grpc.set_data_from_numpy(np.array([1], np.float32))
    with grpc.InferenceServerClient(f"127.0.0.1:{server.ports['GRPCInference']}") as client:
        metadata = {name.lower(): value for name, value in headers.items()}
        answer = client.infer("parameters", [over_grpc], headers=metadata, parameters={"mine": 3})
    assert json.loads(answer.as_numpy("PARAMETERS")[0]) == {"your-header": "2", "mine": 3}


def test_a_group_that_is_unknown_or_closed_twice_ends_the_start(serve: Start, add_model: AddModel) -> None:
    add_model("echo")
    for flags, message in (
        (["--http-restricted-api=model-reposit,health:k=v"], "unknown restricted api 'model-reposit'"),
        (
            ["--http-restricted-api=model-repository,health:k=v", "--http-restricted-api=metadata,health:l=v"],
            "restricted api 'health' can not be specified in multiple config groups",
        ),
        (
            ["--grpc-restricted-protocol=health:k=v", "--grpc-restricted-protocol=health:l=v"],
            "restricted protocol 'health' can not be specified in multiple config groups",
        ),
    ):
        server = serve(*flags)
        assert server.process.wait(PATIENCE_S) != 0
        assert sum(message in line for line in server.text.splitlines()) == 1


def test_a_certificate_that_cannot_be_used_ends_the_start(serve: Start, add_model: AddModel, tmp_path: Path) -> None:
    add_model("echo")
    missing = tmp_path / "nothing"
    server = serve("--http-use-ssl=true", f"--http-server-cert={missing}", f"--http-server-key={missing}")
    assert server.process.wait(PATIENCE_S) == 1
    assert f"--http-server-cert={missing} and --http-server-key={missing} cannot be used: " in server.text


def test_a_cloud_s_port_serves_the_model(serve: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SAGEMAKER_TRITON_DEFAULT_MODEL_NAME", "text")
    monkeypatch.setenv("SAGEMAKER_TRITON_INFERENCE_TYPE", "generate")
    monkeypatch.setenv("AIP_PREDICT_ROUTE", "/predict")
    monkeypatch.setenv("AIP_HEALTH_ROUTE", "/health")
    server = serve(
        "--allow-sagemaker=true",
        "--sagemaker-port=0",
        "--allow-vertex-ai=true",
        "--vertex-ai-port=0",
        "--vertex-ai-default-model=identity",
        repository=PARAMETERS.parent,
    )
    server.wait_until_ready()
    amazon, google = re.findall(r"Started (?:Sagemaker|Vertex AI) HTTPService at \S+:(\d+)", server.text)
    server.ports |= {"SageMaker": int(amazon), "Vertex": int(google)}
    assert server.ask("/ping", port="SageMaker")[0] == 200
    status, answer = server.ask("/invocations", {"text_input": "hi"}, port="SageMaker")
    assert (status, json.loads(answer)["text_output"]) == (200, "hi")
    tensor = {"name": "INPUT0", "datatype": "FP32", "shape": [1, 2], "data": [1, 2]}
    status, answer = server.ask("/predict", {"inputs": [tensor]}, port="Vertex")
    assert (status, json.loads(answer)["outputs"][0]["data"]) == (200, [1, 2])
    assert server.ask("/health", port="Vertex")[0] == 200


def test_the_ports_of_clouds_have_the_tls_of_http(
    serve: Start, add_model: AddModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIP_PREDICT_ROUTE", "/predict")
    monkeypatch.setenv("AIP_HEALTH_ROUTE", "/health")
    monkeypatch.setenv("SAGEMAKER_TRITON_DEFAULT_MODEL_NAME", "echo")
    add_model("echo")
    authority = Authority(tmp_path)
    certificate, key = authority.issue("served")
    clouds = ["--allow-sagemaker=true", "--sagemaker-port=0", "--allow-vertex-ai=true", "--vertex-ai-port=0"]
    tls = ["--http-use-ssl=true", f"--http-server-cert={certificate}", f"--http-server-key={key}"]
    server = serve(*clouds, *tls)
    wait_until(lambda: " ready" in server.text, server.log)
    amazon, google = re.findall(r"Started (?:Sagemaker|Vertex AI) HTTPService at \S+:(\d+)", server.text)
    for path in (f"{amazon}/ping", f"{google}/health"):
        assert _get(f"https://localhost:{path}", authority) == ""
        with pytest.raises((OSError, HTTPException)):
            urllib.request.urlopen(f"http://localhost:{path}", timeout=PATIENCE_S)
