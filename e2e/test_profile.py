"""`argosy profile --job` on a real cluster: a model on the CPU is measured in a Pod, and nothing of that stays."""

import json
import subprocess
import sys

import pytest

from e2e.asking.namespace import Namespace
from e2e.declared.resources import pool, version_model

pytestmark = pytest.mark.timeout(600)

NAME = "measured"
STEPS = ("--instances", "1,2", "--seconds", "0.2")


@pytest.fixture(scope="module", autouse=True)
def served(namespace: Namespace, storage: str) -> None:
    namespace.apply(pool(NAME), version_model(NAME, NAME, storage, maxBatchSize=0))
    namespace.ready()


def profile(namespace: Namespace, *options: str) -> "subprocess.CompletedProcess[str]":
    """Run the command with the test's kubeconfig."""
    where = ("--job", "-n", namespace.name, "--kubeconfig", str(namespace.access.kubeconfig))
    command = [sys.executable, "-m", "argosy.cli", "profile", NAME, *where, *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


def jobs(namespace: Namespace) -> list[str]:
    """Return the Jobs of profiles."""
    return [job["metadata"]["name"] for job in namespace.read("jobs", "-l", f"argosy.dev/profile={NAME}")["items"]]


def test_a_model_is_measured_in_a_pod_with_the_image_of_its_servers(namespace: Namespace) -> None:
    result = profile(namespace, *STEPS, "-o", "json")
    assert result.returncode == 0, result.stderr
    points = json.loads(result.stdout)["points"]
    assert [(point["instances"], point["batch"]) for point in points] == [(1, 1), (2, 1)]
    assert all(point["requests"] > 0 for point in points)
    assert "2 instances: batches of 1" in result.stderr
    namespace.until("the Job is gone", lambda: jobs(namespace) == [])


def test_where_no_node_has_such_a_gpu_the_command_says_so(namespace: Namespace) -> None:
    result = profile(namespace, *STEPS, "--gpu-type", "NVIDIA-None", "--image", "argosy", "--wait", "5")
    assert result.returncode == 1
    assert "no node had room within 5 s" in result.stderr
    namespace.until("the Job is gone", lambda: jobs(namespace) == [])
