"""`argosy plan`: the example's numbers, the ways to write a plan, exit statuses, and every problem of a bad input."""

import json
import sys
from pathlib import Path
from shutil import copy, copytree

import pytest
import typer
import yaml
from click.testing import Result
from tests.operator.planning.declared import body, model_body
from typer.testing import CliRunner

from argosy.cli.planning.plan import plan

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "examples" / "llama-70b"
GOLDEN = ROOT / "tests" / "data" / "plan" / "llama-70b.json"


def run(*arguments: str | Path) -> Result:
    app = typer.Typer()
    app.command()(plan)
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def planned(folder: Path, *more: str) -> Result:
    return run("-f", folder, "--nodes", folder / "nodes.yaml", *more)


@pytest.fixture
def example(tmp_path: Path) -> Path:
    return Path(copytree(EXAMPLE, tmp_path / "llama-70b"))


def edit(file: Path, before: str, after: str) -> None:
    text = file.read_text()
    assert before in text
    file.write_text(text.replace(before, after))


def test_the_example_takes_three_gpus_instead_of_six() -> None:
    result = planned(EXAMPLE, "-o", "json")
    assert result.exit_code == 0, result.output
    results = json.loads(result.stdout)
    totals = {key: results[key] for key in ("gpusUsed", "gpusFree", "gpusTotal", "gpusOnePerModel", "lowerBound")}
    assert totals == {"gpusUsed": 3, "gpusFree": 5, "gpusTotal": 8, "gpusOnePerModel": 6, "lowerBound": 3}


def test_the_example_is_planned_as_recorded() -> None:
    assert json.loads(planned(EXAMPLE, "-o", "json").stdout) == json.loads(GOLDEN.read_text())


def test_yaml_says_what_json_says() -> None:
    assert yaml.safe_load(planned(EXAMPLE, "-o", "yaml").stdout) == json.loads(GOLDEN.read_text())


def test_the_table_shows_every_gpu_and_what_is_left() -> None:
    result = planned(EXAMPLE)
    assert result.exit_code == 0
    rows = {line.split("│")[3].strip(): line for line in result.stdout.splitlines() if line.count("│") == 7}
    assert "60 GiB of 79.6 GiB" in rows["GPU 0"]
    assert "llama-70b" in rows["GPU 1"]
    assert "12 GiB of 79.6 GiB" in rows["GPU 2"]
    assert "███░░░░░░░ 30 %" in rows["GPU 2"]
    assert "embed x2, safety x2" in rows["GPU 2"]
    assert "tokenize x4, detokenize x4" in rows["CPU"]
    assert "h100-b" in rows["4 GPUs free"]
    assert "3 GPUs used, 5 of 8 free. One model per GPU would take 6. No plan takes fewer than 3." in result.stdout


def test_what_fits_nowhere_is_reported_and_is_exit_status_2(example: Path) -> None:
    edit(example / "pool.yaml", "memoryHeadroom: 20%", "memoryHeadroom: 30%")
    result = planned(example, "-o", "json")
    assert result.exit_code == 2
    (unplaced,) = json.loads(result.stdout)["unplaced"]
    assert (unplaced["pool"], unplaced["group"], unplaced["reason"]) == ("default/chat", "chat-70b", "GpuTooSmall")
    assert unplaced["models"] == ["tokenize", "embed", "safety", "llama-70b", "detokenize"]
    assert "largest usable is 55.8 GiB" in unplaced["message"]
    table = planned(example)
    assert table.exit_code == 2
    assert "chat-70b fits nowhere (GpuTooSmall)" in table.stdout
    assert "Of what has a place, one model per GPU would take 0. No plan takes fewer than 0." in table.stdout


def test_gpus_that_cannot_be_had_completely_are_neither_free_nor_used(example: Path) -> None:
    """One of the nodes has half of its GPUs divided by MIG."""
    file = example / "nodes.yaml"
    nodes = json.loads(json.dumps(list(yaml.safe_load_all(file.read_text()))))
    first = nodes[0]["items"][0] if "items" in nodes[0] else nodes[0]
    first["metadata"]["labels"]["nvidia.com/gpu.count"] = "4"
    for kind in ("capacity", "allocatable"):
        first["status"].setdefault(kind, {}).update({"nvidia.com/gpu": "2", "nvidia.com/mig-1g.10gb": "14"})
    file.write_text(yaml.safe_dump_all(nodes))
    result = json.loads(planned(example, "-o", "json").stdout)
    assert (result["gpusTotal"], result["gpusUsed"], result["gpusWithheld"], result["gpusFree"]) == (8, 3, 2, 3)
    assert "3 of 8 free, 2 that cannot be used." in planned(example).stdout


def test_nodes_that_the_pool_does_not_select_are_left_alone(example: Path) -> None:
    edit(example / "pool.yaml", "NVIDIA-H100-80GB-HBM3", "NVIDIA-L4")
    result = planned(example, "-o", "json")
    assert result.exit_code == 2
    results = json.loads(result.stdout)
    assert (results["gpusTotal"], [item["reason"] for item in results["unplaced"]]) == (0, ["NoNodes"])


def test_a_model_runs_on_the_kind_of_gpu_that_it_names(example: Path) -> None:
    nodes = json.loads(json.dumps(yaml.safe_load((example / "nodes.yaml").read_text())))
    nodes["items"][1]["metadata"]["labels"]["nvidia.com/gpu.product"] = "NVIDIA-H200"
    (example / "nodes.yaml").write_text(json.dumps(nodes))
    edit(example / "pool.yaml", "nodeSelector:", "#")
    edit(example / "pool.yaml", "    nvidia.com", "    #")
    edit(example / "models.yaml", "gpuMemory: 60Gi", "gpuMemory: 60Gi\n    gpuType: {products: [NVIDIA-H200]}")
    results = json.loads(planned(example, "-o", "json").stdout)
    assert {server["node"] for pool in results["pools"] for server in pool["servers"]} == {"h100-b"}
    edit(example / "models.yaml", "NVIDIA-H200", "NVIDIA-B200")
    table = planned(example)
    assert table.exit_code == 2
    assert "NoGpuOfType" in table.stdout


def test_without_nodes_it_says_where_to_get_them() -> None:
    result = run("-f", EXAMPLE)
    assert result.exit_code == 1
    assert "--nodes is required" in result.stderr
    assert "kubectl get nodes -o yaml" in result.stderr


def test_every_problem_of_every_file_is_listed_at_once(example: Path) -> None:
    edit(example / "models.yaml", "gpuMemory: 4Gi", "gpuMemory: four")
    edit(example / "models.yaml", "storageUri: s3://models/chat/safety/1", "storageUri: chat/safety")
    edit(example / "nodes.yaml", 'nvidia.com/gpu.memory: "81559"', "team: chat")
    result = planned(example)
    assert result.exit_code == 1
    lines = result.stderr.splitlines()
    assert any("embed: spec.footprint.gpuMemory: 'four' is no quantity" in line for line in lines)
    assert any("safety: spec.storageUri" in line for line in lines)
    assert sum("metadata.labels[nvidia.com/gpu.memory]: is required" in line for line in lines) == 2
    assert result.stdout == ""


def test_a_step_that_does_not_exist_is_a_problem(example: Path) -> None:
    edit(example / "ensemble.yaml", "- model: safety", "- model: safetty")
    result = planned(example)
    assert result.exit_code == 1
    assert f"{example / 'ensemble.yaml'}: Ensemble default/chat-70b: spec.steps[2].model" in result.stderr
    assert "safetty" in result.stderr


def test_faults_between_resources_are_listed_with_those_of_one(example: Path) -> None:
    edit(example / "models.yaml", "gpuMemory: 4Gi", "gpuMemory: four")
    edit(example / "ensemble.yaml", "poolRef: {name: chat}", "poolRef: {name: chatt}")
    result = planned(example)
    assert result.exit_code == 1
    embed, ensemble = sorted(result.stderr.splitlines(), key=lambda line: "Ensemble" in line)
    assert "embed: spec.footprint.gpuMemory" in embed
    assert "ensemble.yaml: Ensemble default/chat-70b: spec.poolRef.name: there is no ServingPool 'chatt'" in ensemble


def test_a_folder_without_resources_is_a_problem(tmp_path: Path) -> None:
    result = run("-f", tmp_path, "--nodes", EXAMPLE / "nodes.yaml")
    assert result.exit_code == 1
    assert "holds no argosy.dev resources" in result.stderr


def test_the_manifests_may_hold_the_nodes_and_other_kinds(example: Path) -> None:
    (example / "other.yaml").write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n")
    assert planned(example, "-o", "json").stdout == planned(EXAMPLE, "-o", "json").stdout


def language_model(folder: Path, spec: str) -> Path:
    """Return a manifest of a pool and of a language model, next to its config.json of Llama 3 8B."""
    weights = folder / "llama"
    weights.mkdir()
    copy(ROOT / "tests" / "data" / "shapes" / "llama-3-8b.json", weights / "config.json")
    manifest = folder / "models.yaml"
    manifest.write_text(
        "apiVersion: argosy.dev/v1alpha1\nkind: ServingPool\nmetadata: {name: chat}\n"
        "spec: {runtime: {name: triton}, tolerations: [{operator: Exists}]}\n---\n"
        "apiVersion: argosy.dev/v1alpha1\nkind: InferenceModel\nmetadata: {name: llama}\nspec:\n"
        "  {poolRef: {name: chat}, modelFormat: {name: vllm}, version: 1, storageUri: 'file:llama', " + spec + "}\n"
    )
    return manifest


def test_a_split_that_contradicts_the_models_files_is_refused(tmp_path: Path) -> None:
    manifest = language_model(tmp_path, "parallelism: {tensor: 3}")
    result = run("-f", manifest, "--nodes", EXAMPLE / "nodes.yaml")
    assert result.exit_code == 1
    assert "InferenceModel default/llama: spec: parallelism.tensor 3 does not divide the model's 32" in result.output


def test_advice_on_the_split_is_shown(tmp_path: Path) -> None:
    spec = "parallelism: {tensor: 4}, traffic: {promptTokens: 10, outputTokens: 90}"
    manifest = language_model(tmp_path, spec)
    table = run("-f", manifest, "--nodes", EXAMPLE / "nodes.yaml")
    assert "InferenceModel default/llama: DecodeHeavy: decode-heavy traffic" in " ".join(table.output.split())
    document = json.loads(run("-f", manifest, "--nodes", EXAMPLE / "nodes.yaml", "-o", "json").output)
    (advice,) = document["advice"]
    assert advice["resource"] == "InferenceModel default/llama"


DIGITS = ROOT / "examples" / "digits"
CPU_NODE = """
apiVersion: v1
kind: Node
metadata: {name: n, labels: {kubernetes.io/arch: arm64}}
status:
  capacity: {memory: 32Gi}
  allocatable: {memory: 32Gi}
  conditions: [{type: Ready, status: "True"}]
"""


def test_engines_that_are_to_be_built_are_reported_and_hold_nothing_up(tmp_path: Path) -> None:
    manifest = tmp_path / "models.yaml"
    text = (DIGITS / "models.yaml").read_text()
    manifest.write_text(text.replace("minServers: 1", "storage: {engineCache: {storageUri: s3://b/engines}}"))
    nodes = tmp_path / "nodes.yaml"
    nodes.write_text(CPU_NODE)
    result = run("-f", manifest, "--nodes", nodes)
    assert result.exit_code == 0, result.output
    assert "To be built first: onnxruntime int8 arm64 for digits" in result.output
    document = json.loads(run("-f", manifest, "--nodes", nodes, "-o", "json").output)
    assert [build["models"] for build in document["builds"]] == [["InferenceModel default/digits"]]
    assert [model["model"] for model in document["pools"][0]["servers"][0]["models"]] == ["digits"]


def test_a_setting_without_effect_is_named_apart_from_the_plan(example: Path) -> None:
    unused = "  packing: {consolidate: 'Off', consolidateAfter: 5m}\n"
    edit(example / "pool.yaml", "  nodeSelector:\n", f"{unused}  nodeSelector:\n")
    result = planned(example, "-o", "json")
    assert "without effect in this release: spec.packing.consolidateAfter" in result.stderr
    assert json.loads(result.stdout)["gpusUsed"] == 3


def test_what_a_rollout_will_do_that_may_surprise_is_printed_apart_from_the_plan(example: Path) -> None:
    edit(example / "models.yaml", "spec:\n", "spec:\n  rollout: {strategy: Recreate}\n")
    result = planned(example, "-o", "json")
    assert "spec.rollout.strategy: Recreate unloads the only replica before its successor is loaded" in result.stderr
    assert json.loads(result.stdout)["gpusUsed"] == 3


def test_what_would_make_it_fit_is_named_with_the_option_to_try_it(example: Path) -> None:
    edit(example / "pool.yaml", "memoryHeadroom: 20%", "memoryHeadroom: 30%")
    (unplaced,) = json.loads(planned(example, "-o", "json").stdout)["unplaced"]
    change = "memoryHeadroom 30 % → 24 %, so that node h100-b has the memory"
    assert unplaced["remedies"] == [{"kind": "Setting", "change": change}]
    assert f"it would fit with: {change}" in planned(example).stdout
    edit(example / "pool.yaml", "memoryHeadroom: 30%", "memoryHeadroom: 24%")
    assert planned(example).exit_code == 0


def test_why_models_are_where_they_are_is_explained() -> None:
    lines = planned(EXAMPLE, "--explain", "embed").stdout.splitlines()
    start = "chat-70b is on GPUs 0, 1, 2 of node h100-a (server chat-0). SharesServer: one server has all of"
    assert any(line.startswith(start) for line in lines)
    assert "  FullGpus: llama-70b takes 2 GPUs that NVLink joins for itself" in lines
    (entry,) = json.loads(planned(EXAMPLE, "--explain", "-o", "json").stdout)["explanations"]
    assert (entry["group"], entry["rule"], entry["node"]) == ("chat-70b", "SharesServer", "h100-a")
    assert "explanations" not in json.loads(planned(EXAMPLE, "-o", "json").stdout)


def test_what_has_no_replica_is_named_with_the_reason(tmp_path: Path) -> None:
    models = [
        model_body("stopped", replicas=0),
        model_body("asleep", minReplicas=0, maxReplicas=2),
        model_body("awake"),
        model_body("idle", poolRef={"name": "q"}),
    ]
    pools = [body("ServingPool", "p"), body("ServingPool", "q", suspend=True)]
    (tmp_path / "fleet.yaml").write_text(yaml.safe_dump_all([*pools, *models]))
    arguments = ("-f", tmp_path / "fleet.yaml", "--nodes", EXAMPLE / "nodes.yaml")
    lines = run(*arguments).stdout.splitlines()
    asleep = (
        "asleep has no replica: it is at zero until requests come (minReplicas: 0); to plan with some, set replicas"
    )
    assert asleep in lines
    assert "stopped has no replica: replicas is 0" in lines
    assert "idle has no replica: its pool is suspended (spec.suspend)" in lines
    named = run(*arguments, "--explain", "asleep").stdout
    assert asleep in named
    assert "stopped has no replica" not in named
    document = json.loads(run(*arguments, "-o", "json").stdout)["withoutReplicas"]
    assert [(one["pool"], one["group"]) for one in document] == [
        ("default/p", "asleep"),
        ("default/p", "stopped"),
        ("default/q", "idle"),
    ]


def test_names_to_explain_are_those_of_the_fleet() -> None:
    refused = planned(EXAMPLE, "--explain", "Embed")
    assert (refused.exit_code, refused.stderr) == (
        1,
        "--explain Embed: there is no such model or ensemble; the nearest is embed\n",
    )
    assert "models are named with --explain; manifests with --filename" in planned(EXAMPLE, "embed").stderr


def test_a_limit_of_the_search_needs_a_search() -> None:
    refused = planned(EXAMPLE, "--prove-limit", "5")
    assert (refused.exit_code, refused.stderr) == (1, "--prove-limit: limits the search of --prove; add --prove\n")


def test_a_picture_has_no_reasons() -> None:
    refused = planned(EXAMPLE, "-o", "svg", "--explain")
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert refused.stderr.startswith("--explain: a picture has no reasons")


def test_what_another_pool_uses_is_not_free(tmp_path: Path) -> None:
    tensor = [{"name": "x", "dataType": "TYPE_FP32", "dims": [4]}]
    for name in ("first", "second"):
        spec = {
            "poolRef": {"name": name},
            "modelFormat": {"name": "onnx"},
            "version": 1,
            "storageUri": f"s3://m/{name}/1",
            "inputs": tensor,
            "outputs": tensor,
            "footprint": {"gpuMemory": "60Gi"},
        }
        bodies = [body("ServingPool", name), body("InferenceModel", f"of-{name}", **spec)]
        (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump_all(bodies))
    labels = {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3", "nvidia.com/gpu.memory": "81559"}
    state = {
        "conditions": [{"type": "Ready", "status": "True"}],
        "allocatable": {"cpu": "8", "memory": "64Gi", "nvidia.com/gpu": "2"},
    }
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "h1", "labels": labels}, "status": state}
    (tmp_path / "node.yaml").write_text(yaml.safe_dump(node))
    result = run("-f", tmp_path / "first.yaml", "-f", tmp_path / "second.yaml", "--nodes", tmp_path / "node.yaml")
    assert result.exit_code == 0, result.output
    assert "2 GPUs used, 0 of 2 free" in result.stdout
    assert "GPU free" not in result.stdout


def test_a_plan_is_proven_to_be_the_best() -> None:
    pytest.importorskip("ortools", reason="OR-Tools proves it: pip install 'argosy[prove]'")
    result = json.loads(planned(EXAMPLE, "--prove", "-o", "json").stdout)
    (proof,) = result["proofs"]
    assert {"gpus": 3, "lowerBound": 3, "gap": 0, "optimal": True, "complete": True}.items() <= proof.items()
    lines = planned(EXAMPLE, "--prove").stdout.splitlines()
    line = "Proof for pool default/chat: no plan takes fewer than 3 GPUs; no further replica has a place."
    assert line in lines


def test_without_or_tools_the_extra_is_named(monkeypatch: pytest.MonkeyPatch, example: Path) -> None:
    monkeypatch.setitem(sys.modules, "ortools", None)
    monkeypatch.setitem(sys.modules, "ortools.sat.python", None)
    refused = planned(example, "--prove")
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert "pip install 'argosy[prove]'" in refused.stderr
