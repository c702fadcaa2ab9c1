"""`argosy plan` says what lost its place to which, with both priorities: as a table, a document and a picture."""

import json
import re
from pathlib import Path

import pytest
from tests.operator.cli.test_plan import run

POOL = """
apiVersion: argosy.dev/v1alpha1
kind: ServingPool
metadata: {name: p}
spec: {packing: {preemption: LowerPriority}}
"""
MODEL = """
---
apiVersion: argosy.dev/v1alpha1
kind: InferenceModel
metadata: {name: %s}
spec:
  poolRef: {name: p}
  modelFormat: {name: onnx}
  version: 1
  storageUri: s3://b/m
  priority: %d
  footprint: {gpuMemory: 50Gi}
  inputs: [{name: X, dataType: TYPE_FP32, dims: [1]}]
  outputs: [{name: Y, dataType: TYPE_FP32, dims: [1]}]
"""
NODES = """
apiVersion: v1
kind: Node
metadata:
  name: a
  labels: {nvidia.com/gpu.product: NVIDIA-H100-80GB-HBM3, nvidia.com/gpu.memory: "81559", nvidia.com/gpu.count: "1"}
status:
  capacity: {nvidia.com/gpu: "1"}
  allocatable: {nvidia.com/gpu: "1"}
  conditions: [{type: Ready, status: "True"}]
"""


@pytest.fixture
def fleet(tmp_path: Path) -> list[str]:
    """Return arguments by which `high` comes to a fleet in which `low` has the only GPU."""
    (tmp_path / "fleet.yaml").write_text(POOL + MODEL % ("low", 3))
    (tmp_path / "high.yaml").write_text(MODEL % ("high", 500))
    (tmp_path / "nodes.yaml").write_text(NODES)
    return [*(f"-f {tmp_path}/fleet.yaml --nodes {tmp_path}/nodes.yaml --add {tmp_path}/high.yaml".split())]


LINE = "low (priority 3) loses its place on p-0 to high (priority 500)"


def test_the_table_has_a_line(fleet: list[str]) -> None:
    assert LINE in " ".join(run(*fleet).stdout.split())


def test_the_document_has_both_priorities(fleet: list[str]) -> None:
    document = json.loads(run(*fleet, "-o", "json").stdout)
    winner = {"group": "high", "priority": 500}
    lost = {"pool": "default/p", "group": "low", "server": "p-0", "priority": 3, "preemptedBy": winner}
    assert document["preempted"] == [lost]


def test_the_picture_has_the_line(fleet: list[str]) -> None:
    texts = re.sub(r"<[^>]*>", " ", run(*fleet, "-o", "svg").stdout)
    assert LINE in " ".join(texts.split())


def test_without_a_loss_the_document_has_none(fleet: list[str]) -> None:
    assert "preempted" not in json.loads(run(*fleet[:4], "-o", "json").stdout)


def test_a_gpu_that_changes_pools_is_shown_where_it_ends(tmp_path: Path) -> None:
    pools = POOL + "---" + POOL.replace("name: p", "name: q")
    (tmp_path / "fleet.yaml").write_text(pools + MODEL % ("low", 3))
    (tmp_path / "high.yaml").write_text((MODEL % ("high", 500)).replace("name: p}", "name: q}"))
    (tmp_path / "nodes.yaml").write_text(NODES)
    files = f"-f {tmp_path}/fleet.yaml --nodes {tmp_path}/nodes.yaml --add {tmp_path}/high.yaml".split()
    document = json.loads(run(*files, "-o", "json").stdout)
    assert [one["models"] for one in document["unplaced"]] == [["low"]]
    winner = {"group": "high", "priority": 500, "pool": "default/q"}
    lost = {"pool": "default/p", "group": "low", "server": "p-0", "priority": 3, "preemptedBy": winner}
    assert document["preempted"] == [lost]
    changes = document["changes"]
    assert [(one["model"], one["to"]["node"]) for one in changes["placed"]] == [("high", "a")]
    assert (changes["gpusBefore"], changes["gpusAfter"]) == (1, 1)
