"""`argosy plan --from`: the moves by which GPUs of a fleet that runs would come free."""

import json
from pathlib import Path

import pytest
import yaml
from tests.operator.cli.test_plan import EXAMPLE, run

SIZES = {"a0": 40, "b0": 40, "c0": 40, "a1": 20, "b1": 20, "c1": 20}
LEFT = ("c0", "a1", "b1", "c1")


def manifests(folder: Path, names: tuple[str, ...], mode: str) -> Path:
    """Write a pool with these models, and return the file."""
    pool = {"apiVersion": "argosy.dev/v1alpha1", "kind": "ServingPool", "metadata": {"name": "p"}}
    tolerated = [{"key": "nvidia.com/gpu", "operator": "Exists"}]
    tensor = {"dataType": "TYPE_FP32", "dims": [1]}
    models = [
        {
            "apiVersion": "argosy.dev/v1alpha1",
            "kind": "InferenceModel",
            "metadata": {"name": name},
            "spec": {
                "poolRef": {"name": "p"},
                "modelFormat": {"name": "onnx"},
                "version": 1,
                "storageUri": f"s3://models/{name}",
                "footprint": {"gpuMemory": f"{SIZES[name]}Gi"},
                "inputs": [{"name": "X", **tensor}],
                "outputs": [{"name": "Y", **tensor}],
            },
        }
        for name in names
    ]
    spec = {"packing": {"consolidate": mode}, "tolerations": tolerated}
    file = folder / "fleet.yaml"
    file.write_text(yaml.safe_dump_all([{**pool, "spec": spec}, *models]))
    return file


@pytest.fixture
def running(tmp_path: Path) -> Path:
    """Return the plan of all models, in a file."""
    result = run("-f", manifests(tmp_path, tuple(SIZES), "Recommend"), "--nodes", EXAMPLE / "nodes.yaml", "-o", "json")
    file = tmp_path / "plan.json"
    file.write_text(result.stdout)
    assert json.loads(result.stdout)["gpusUsed"] == 3
    return file


def test_what_would_be_moved_is_printed_with_what_comes_free(running: Path, tmp_path: Path) -> None:
    more = ("--nodes", EXAMPLE / "nodes.yaml", "--from", running)
    left = manifests(tmp_path, LEFT, "Recommend")
    table = run("-f", left, *more)
    assert "default/p: 1 GPU would come free if 1 replica (20 GiB) left" in table.stdout
    assert "  a1 from " in table.stdout or "  b1 from " in table.stdout
    (step,) = json.loads(run("-f", left, *more, "-o", "json").stdout)["consolidation"]
    assert (step["pool"], step["gpusFreed"], step["bytes"]) == ("default/p", 1, 20 << 30)
    (move,) = step["moves"]
    ends = f"from {move['from']} on node {move['fromNode']} to {move['to']} on node {move['toNode']}"
    assert f"  {move['group']} {ends} (20 GiB)" in table.stdout
    assert f"{move['group']} {ends}" in run("-f", left, *more, "-o", "svg").stdout


def test_nothing_is_recommended_without_a_running_fleet_or_with_off(running: Path, tmp_path: Path) -> None:
    nodes = ("--nodes", EXAMPLE / "nodes.yaml")
    assert "consolidation" not in json.loads(
        run("-f", manifests(tmp_path, LEFT, "Recommend"), *nodes, "-o", "json").stdout
    )
    off = run("-f", manifests(tmp_path, LEFT, "Off"), *nodes, "--from", running, "-o", "json")
    assert "consolidation" not in json.loads(off.stdout)
