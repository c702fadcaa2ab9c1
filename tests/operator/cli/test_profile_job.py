"""`argosy profile --job`: a Job that is measured, followed, and removed, whatever happens."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml
from click.testing import Result
from tests.operator.cli.job_cluster import JobCluster, body_of, job_cluster
from typer.testing import CliRunner

from argosy.cli.profile.profile import profile

MODEL = """
apiVersion: argosy.dev/v1alpha1
kind: InferenceModel
metadata: {name: twice, namespace: default}
spec:
  poolRef: {name: p}
  modelFormat: {name: python}
  version: 1
  storageUri: FOLDER
  maxBatchSize: 4
  inputs: [{name: X, dataType: TYPE_FP32, dims: [4]}]
  outputs: [{name: Y, dataType: TYPE_FP32, dims: [4]}]
"""
POOL = """
apiVersion: argosy.dev/v1alpha1
kind: ServingPool
metadata: {name: p, namespace: default}
spec: {}
"""
CODE = """
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        tensors = [pb_utils.get_input_tensor_by_name(request, "X").as_numpy() for request in requests]
        return [pb_utils.InferenceResponse([pb_utils.Tensor("Y", 2 * tensor)]) for tensor in tensors]
"""
SERVER = {"name": "server", "image": "argosy-runtime:1"}


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "twice").mkdir()
    (tmp_path / "twice" / "model.py").write_text(CODE)
    (tmp_path / "models.yaml").write_text(MODEL.replace("FOLDER", (tmp_path / "twice").as_uri()))
    return tmp_path


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[tuple[JobCluster, Path]]:
    with job_cluster(tmp_path) as started:
        yield started


def run(files: Path, kubeconfig: Path, *arguments: str) -> Result:
    app = typer.Typer()
    app.command()(profile)
    manifest = ["-f", str(files / "models.yaml")] if "--in-cluster" not in arguments else []
    own = [one for one in arguments if one != "--in-cluster"]
    return CliRunner().invoke(app, ["twice", "--job", "--kubeconfig", str(kubeconfig), *manifest, *own])


def test_a_job_measures_and_is_removed(files: Path, cluster: tuple[JobCluster, Path]) -> None:
    server, kubeconfig = cluster
    patch = files / "patch.yaml"
    steps = ["-b", "1,4", "-i", "1", "--seconds", "0.05"]
    result = run(files, kubeconfig, "--image", "argosy:1", *steps, "-o", "json", "--patch", str(patch))
    assert result.exit_code == 0, result.output
    points = json.loads(result.stdout)["points"]
    assert [(point["instances"], point["batch"]) for point in points] == [(1, 1), (1, 4)]
    assert "1 instance: batches of 4" in result.stderr
    assert yaml.safe_load(patch.read_text())["metadata"] == {"name": "twice", "namespace": "default"}
    assert server.container()["image"] == "argosy:1"
    assert server.deleted == ["twice-profile-x7k2p"]


def test_what_the_cluster_has_is_measured_with_the_image_of_its_servers(
    files: Path, cluster: tuple[JobCluster, Path]
) -> None:
    server, kubeconfig = cluster
    server.objects["inferencemodels", "twice"] = body_of((files / "models.yaml").read_text())
    server.objects["servingpools", "p"] = body_of(POOL)
    server.servers = [{"metadata": {"name": "p-0"}, "spec": {"containers": [SERVER]}}]
    result = run(files, kubeconfig, "--in-cluster", "-b", "1", "-i", "1", "--seconds", "0.05")
    assert result.exit_code == 0, result.output
    assert server.container()["image"] == "argosy-runtime:1"
    assert "resources" not in server.container()


def waiting(reason: str, message: str) -> dict[str, Any]:
    state = {"waiting": {"reason": reason, "message": message}}
    return {"phase": "Pending", "containerStatuses": [{"image": "argosy:1", "state": state}]}


UNSCHEDULABLE = {
    "phase": "Pending",
    "conditions": [{"type": "PodScheduled", "status": "False", "message": "0/3 nodes are available"}],
}
KILLED = {"phase": "Failed", "containerStatuses": [{"state": {"terminated": {"reason": "OOMKilled", "exitCode": 137}}}]}
ENDED = {"phase": "Failed", "containerStatuses": [{"state": {"terminated": {"reason": "Error", "exitCode": 1}}}]}


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (UNSCHEDULABLE, "no node had room within 1 s (0/3 nodes are available); name another --gpu-type"),
        (waiting("ImagePullBackOff", "no such tag"), "the image argosy:1 cannot be pulled (no such tag); name one by"),
        (waiting("CreateContainerConfigError", 'secret "s" not found'), 'cannot be started: secret "s" not found'),
        (KILLED, "the host's memory was not sufficient"),
        (ENDED, "the measurement failed: exit status 1\n  it is broken"),
        ({"phase": "Succeeded"}, "the Job ended without a result; use an image of this release by --image"),
    ],
)
def test_a_job_that_fails_says_why_and_is_removed(
    files: Path, cluster: tuple[JobCluster, Path], status: dict[str, Any], message: str
) -> None:
    server, kubeconfig = cluster
    server.pod, server.log = {"status": status}, "argosy-profile: it is broken\n"
    result = run(files, kubeconfig, "--image", "argosy:1", "--wait", "1")
    assert result.exit_code == 1, result.output
    assert message in result.stderr
    assert server.deleted == ["twice-profile-x7k2p"]


def test_a_job_that_takes_too_long_is_reported(files: Path, cluster: tuple[JobCluster, Path]) -> None:
    server, kubeconfig = cluster
    server.pod = {"status": {"phase": "Running"}}
    server.job_status = {"conditions": [{"type": "Failed", "status": "True", "reason": "DeadlineExceeded"}]}
    result = run(files, kubeconfig, "--image", "argosy:1")
    assert result.exit_code == 1
    assert "it took longer than --timeout" in result.stderr


def test_a_gpu_type_requests_a_gpu_of_it(files: Path, cluster: tuple[JobCluster, Path]) -> None:
    server, kubeconfig = cluster
    server.pod = {"status": {"phase": "Succeeded"}}
    run(files, kubeconfig, "--image", "argosy:1", "--gpu-type", "NVIDIA-L4")
    assert server.container()["resources"]["limits"] == {"nvidia.com/gpu": "1"}
    assert "NVIDIA-L4" in json.dumps(server.job["spec"]["template"]["spec"]["affinity"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "--image: no server on a CPU of the pool p runs in default, whose image could be taken; name one"),
        (["--in-cluster"], "there is no InferenceModel twice in the namespace default"),
    ],
)
def test_what_is_missing_is_named(
    files: Path, cluster: tuple[JobCluster, Path], arguments: list[str], message: str
) -> None:
    server, kubeconfig = cluster
    result = run(files, kubeconfig, *arguments)
    assert result.exit_code == 1
    assert message in result.stderr
    assert server.deleted == []


def test_options_of_a_cluster_need_a_job(files: Path) -> None:
    app = typer.Typer()
    app.command()(profile)
    result = CliRunner().invoke(app, ["twice", "--gpu-type", "NVIDIA-L4"])
    assert result.exit_code == 1
    assert "--filename: name the manifests, or measure in a cluster by --job" in result.stderr
    assert "--gpu-type: has an effect with --job alone" in result.stderr


def test_an_interruption_removes_the_job(files: Path, cluster: tuple[JobCluster, Path]) -> None:
    server, kubeconfig = cluster
    server.pod, server.log = {"status": {"phase": "Running"}}, "argosy-profile: 1 instance: loading\n"
    options = ["-f", str(files / "models.yaml"), "--image", "argosy:1", "--kubeconfig", str(kubeconfig)]
    command = [sys.executable, "-m", "argosy.cli", "profile", "twice", "--job", *options]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=dict(os.environ)) as running:
        assert running.stderr is not None
        while "loading" not in (line := running.stderr.readline()):
            assert line
        running.send_signal(signal.SIGINT)
        rest = running.stderr.read()
    assert running.returncode == 130
    assert "Traceback" not in rest
    assert server.deleted == ["twice-profile-x7k2p"]
