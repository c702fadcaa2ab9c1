"""`argosy plan --add, --remove, --with-node, --without-node, --from`: what changes, and every wrong name at once."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import Result
from tests.operator.cli.test_plan import EXAMPLE, planned, run

NODES = EXAMPLE / "nodes.yaml"
PRODUCT = "NVIDIA-H100-80GB-HBM3"
EXTRA = """
apiVersion: argosy.dev/v1alpha1
kind: InferenceModel
metadata: {name: rerank}
spec:
  poolRef: {name: chat}
  modelFormat: {name: python}
  version: 1
  storageUri: s3://models/rerank/1
  inputs: [{name: X, dataType: TYPE_FP32, dims: [1]}]
  outputs: [{name: Y, dataType: TYPE_FP32, dims: [1]}]
  footprint: {gpuMemory: 8Gi, compute: 20%}
"""


@pytest.fixture
def extra(tmp_path: Path) -> Path:
    file = tmp_path / "rerank.yaml"
    file.write_text(EXTRA)
    return file


def document(*more: str | Path) -> dict[str, Any]:
    result = planned(EXAMPLE, "-o", "json", *map(str, more))
    assert result.exit_code in (0, 2), result.output
    return json.loads(result.stdout)


def changes(*more: str | Path) -> dict[str, Any]:
    return document(*more)["changes"]


def errors(*more: str | Path) -> list[str]:
    result = planned(EXAMPLE, *map(str, more))
    assert result.exit_code == 1, result.output
    assert result.stdout == ""
    return result.stderr.splitlines()


def names(changed: list[dict[str, Any]]) -> set[str]:
    return {change["model"] for change in changed}


def test_without_what_if_nothing_is_compared() -> None:
    assert "changes" not in document()


def test_a_model_that_is_added_moves_nothing(extra: Path) -> None:
    changed = changes("--add", extra)
    (placed,) = changed["placed"]
    assert (placed["model"], placed["to"]["node"], "from" in placed) == ("rerank", "h100-a", False)
    assert (changed["moved"], changed["lost"], changed["removed"]) == ([], [], [])
    assert (changed["gpusBefore"], changed["gpusAfter"]) == (3, 3)


def test_a_resource_that_is_added_again_replaces_the_former(extra: Path) -> None:
    file = extra.with_name("llama.yaml")
    text = (EXAMPLE / "models.yaml").read_text()
    llama = next(one for one in text.split("---") if "name: llama-70b" in one)
    file.write_text(llama.replace("60Gi", "63Gi"))
    plan = document("--add", file)
    models = [model for server in plan["pools"][0]["servers"] for model in server["models"]]
    assert {model["memory"] for model in models if model["model"] == "llama-70b"} == {63 << 30}


def test_what_is_removed_ends() -> None:
    plan = document("--remove", "chat-70b", "--remove", "InferenceModel/llama-70b")
    assert names(plan["changes"]["removed"]) == {"llama-70b"}
    assert [plan["changes"][name] for name in ("gpusBefore", "gpusAfter", "gpusRetained")] == [3, 1, 2]


@pytest.mark.parametrize("name", ["inferencemodel/llama-70b", "INFERENCEMODEL/default/llama-70b"])
def test_a_kind_to_remove_is_named_in_any_case(name: str) -> None:
    assert "llama-70b" in names(document("--remove", "chat-70b", "--remove", name)["changes"]["removed"])


def test_a_remedy_names_the_node_that_a_tried_one_is_a_copy_of(tmp_path: Path) -> None:
    file = tmp_path / "rerank.yaml"
    file.write_text(EXTRA.replace("version: 1", "version: 1\n  replicas: 9").replace("8Gi", "60Gi"))
    tried = ("--without-node", "h100-a", "--without-node", "h100-b", "--with-node", PRODUCT)
    unplaced = next(one for one in document("--add", file, *tried)["unplaced"] if one["group"] == "rerank")
    (node,) = (one for one in unplaced["remedies"] if one["kind"] == "Node")
    assert node["change"].startswith("one more node like h100-a (")
    assert node["option"].startswith("--with-node h100-a")


def test_what_runs_on_a_node_that_is_taken_away_moves() -> None:
    changed = changes("--without-node", "h100-a")
    assert names(changed["moved"]) == {"tokenize", "embed", "safety", "llama-70b", "detokenize"}
    assert {(move["from"]["node"], move["to"]["node"]) for move in changed["moved"]} == {("h100-a", "h100-b")}


def test_what_has_no_other_node_is_lost() -> None:
    result = planned(EXAMPLE, "-o", "json", "--without-node", "h100-a", "--without-node", "h100-b")
    assert result.exit_code == 2
    changed = json.loads(result.stdout)["changes"]
    assert names(changed["lost"]) == {"tokenize", "embed", "safety", "llama-70b", "detokenize"}
    assert (changed["moved"], changed["gpusAfter"]) == ([], 0)


@pytest.mark.parametrize("kind", [f"{PRODUCT}=2", "h100-b=2"])
def test_nodes_are_added_by_product_or_like_another(kind: str) -> None:
    plan = document("--with-node", kind)
    assert plan["gpusTotal"] == 16
    assert (plan["changes"]["moved"], plan["changes"]["gpusAfter"]) == ([], 3)


def test_the_table_says_what_changes() -> None:
    output = planned(EXAMPLE, "--without-node", "h100-a").stdout
    assert "What changes: 3 GPUs needed before, 3 after (+0)." in output
    assert "embed moves from GPU 2 of node h100-a (server chat-0) to GPU 2 of node h100-b (server chat-0)" in output
    assert "Nothing changes: 3 GPUs needed." in planned(EXAMPLE, "--with-node", PRODUCT).stdout


def test_every_wrong_name_is_an_error_with_the_nearest(extra: Path) -> None:
    lines = errors(
        *("--remove", "saftey", "--without-node", "h100-x", "--with-node", "NVIDIA-H100"),
        *("--with-node", f"{PRODUCT}=none"),
    )
    assert "--remove saftey: there is no such resource; the nearest is safety" in lines
    assert "--without-node h100-x: there is no such node; the nearest is h100-b" in lines
    assert any("--with-node NVIDIA-H100: no node has" in one and f"nearest is {PRODUCT}" in one for one in lines)
    assert any("'none' is no number of nodes" in one for one in lines)


def test_changes_that_break_a_reference_are_refused() -> None:
    (line,) = errors("--remove", "safety")
    assert "Ensemble default/chat-70b: spec.steps[2].model: there is no InferenceModel" in line


def test_an_invalid_manifest_that_is_added_is_refused(extra: Path) -> None:
    extra.write_text(EXTRA.replace("8Gi", "eight"))
    assert "rerank: spec.footprint.gpuMemory: 'eight' is no quantity" in errors("--add", extra)[0]


def test_a_name_that_two_resources_have_asks_for_the_kind(extra: Path) -> None:
    pool = extra.with_name("pool.yaml")
    pool.write_text(EXTRA.replace("name: rerank", "name: chat"))
    nodes = ("--nodes", NODES)
    result = run("-f", EXAMPLE, "-f", pool, *nodes, "--remove", "chat")
    assert result.exit_code == 1
    assert "write one of them in full, as" in result.stderr
    assert run("-f", EXAMPLE, "-f", pool, *nodes, "--remove", "InferenceModel/chat").exit_code == 0


def test_nodes_of_one_product_that_differ_are_copied_by_name(tmp_path: Path) -> None:
    fleet = json.loads(json.dumps(yaml.safe_load(NODES.read_text())))
    fleet["items"][1]["metadata"]["labels"]["nvidia.com/gpu.memory"] = "40960"
    nodes = tmp_path / "nodes.json"
    nodes.write_text(json.dumps(fleet))
    refused = run("-f", EXAMPLE, "--nodes", nodes, "--with-node", PRODUCT)
    assert refused.exit_code == 1
    assert "such nodes differ in their GPUs; name the node to copy: h100-a, h100-b" in refused.stderr
    assert run("-f", EXAMPLE, "--nodes", nodes, "--with-node", "h100-b").exit_code == 0


def from_plan(tmp_path: Path, text: str) -> Result:
    file = tmp_path / "plan.json"
    file.write_text(text)
    return planned(EXAMPLE, "-o", "json", "--from", str(file))


@pytest.mark.parametrize("number", ["1000000000", "9" * 5000, "10001"])
def test_more_nodes_than_a_plan_can_have_are_refused_at_once(number: str) -> None:
    (line,) = errors("--with-node", f"h100-b={number}")
    assert line.endswith("a plan adds at most 10000 nodes in all; write a smaller number")


def test_the_nodes_of_all_options_together_are_limited() -> None:
    assert len(errors("--with-node", "h100-b=6000", "--with-node", "h100-a=6000")) == 1


def test_a_number_of_zeros_is_no_number_of_nodes() -> None:
    assert "'00' is no number of nodes" in errors("--with-node", "h100-b=00")[0]


def test_a_plan_starts_from_the_servers_of_an_earlier_one(tmp_path: Path) -> None:
    plan = document("--without-node", "h100-a")
    result = from_plan(tmp_path, json.dumps(plan))
    again = json.loads(result.stdout)
    unchanged = {"moved": [], "placed": [], "removed": [], "lost": []}
    assert again["changes"] == {"gpusBefore": 3, "gpusAfter": 3, "gpusRetained": 0, **unchanged}
    assert {server["node"] for server in again["pools"][0]["servers"]} == {"h100-b"}


def test_a_file_that_is_no_plan_or_of_other_nodes_is_refused(tmp_path: Path) -> None:
    assert "is no plan" in from_plan(tmp_path, "[]").stderr
    assert "is no plan" in from_plan(tmp_path, "{").stderr
    other = json.dumps(document()).replace("h100-a", "h100-z")
    assert "server chat-0 of pool default/chat: there is no node h100-z" in from_plan(tmp_path, other).stderr
    assert "(pools: expected a list); write one with: argosy plan" in from_plan(tmp_path, "{}").stderr
    wrong = json.dumps(document()).replace('"gpus": [', '"gpus": ["x", ')
    assert "(pools[0].servers[0].models[0].gpus: expected a list of GPU indexes)" in from_plan(tmp_path, wrong).stderr
    less = json.dumps(document()).replace('"memory": ', '"memory": -')
    assert ".memory: expected a number that is not negative)" in from_plan(tmp_path, less).stderr
    missing = planned(EXAMPLE, "--from", str(tmp_path / "none.json"))
    assert (missing.exit_code, "no such file" in missing.stderr) == (1, True)


def test_a_plan_that_cannot_run_is_refused_with_every_reason(tmp_path: Path) -> None:
    plan = document()
    (server,) = plan["pools"][0]["servers"]
    plan["pools"][0]["servers"] += [{**server, "models": []}, {**server, "name": "chat-1", "gpus": [0]}]
    plan["pools"].append({"name": "default/other", "servers": []})
    lines = from_plan(tmp_path, json.dumps(plan)).stderr.splitlines()
    reasons = [line.partition("plan.json: ")[2] for line in lines]
    assert reasons[0].startswith("pool default/other: there is no such ServingPool")
    outside = "server chat-1 of pool default/chat: model"
    assert any(one.startswith(outside) and "not among the server's gpus" in one for one in reasons)
    assert "server chat-0 of pool default/chat: is there 2 times; keep one" in reasons
    assert (
        "server chat-1 of pool default/chat: server chat-0 of pool default/chat has GPU 0 of node h100-a, too; give it "
        "to one of them"
    ) in reasons


@pytest.mark.parametrize(
    ("name", "nearest"),
    [("Safety", "safety"), ("inferencemodel/Safety", "InferenceModel/safety"), ("DEFAULT/Embed", "default/embed")],
)
def test_a_name_in_other_capitals_is_offered_in_its_own(name: str, nearest: str) -> None:
    assert errors("--remove", name) == [f"--remove {name}: there is no such resource; the nearest is {nearest}"]


def test_without_a_kubeconfig_one_line_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    (line,) = run("--cluster").stderr.splitlines()
    assert "gives no way to an API server" in line


def test_contradicting_options_are_refused() -> None:
    assert "--filename or --cluster is required" in run("--nodes", NODES).stderr
    assert "--namespace: is for a cluster; add --cluster" in planned(EXAMPLE, "-n", "chat").stderr
    refused = planned(EXAMPLE, "--cluster")
    assert refused.exit_code == 1
    assert "--filename: --cluster has the whole fleet" in refused.stderr


def test_a_cluster_that_cannot_be_reached_is_an_error(tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text("apiVersion: v1\nkind: Config\nclusters: []\n")
    result = run("--cluster", "--kubeconfig", config)
    assert result.exit_code == 1
    assert "gives no way to an API server" in result.stderr


def test_an_odd_node_is_a_warning_and_the_others_are_planned_with(tmp_path: Path) -> None:
    nodes = yaml.safe_load_all(NODES.read_text())
    every = [item for one in nodes for item in (one.get("items") or [one])]
    odd = {"kind": "Node", "metadata": {"name": "odd", "labels": {"nvidia.com/gpu.memory": "Unknown"}}}
    odd["status"] = {"capacity": {"nvidia.com/gpu": "4"}}
    file = tmp_path / "nodes.json"
    file.write_text(json.dumps({"kind": "List", "items": [*every, odd]}))
    plain = run("-f", str(EXAMPLE), "--nodes", str(NODES), "-o", "json")
    result = run("-f", str(EXAMPLE), "--nodes", str(file), "-o", "json")
    assert (result.exit_code, result.stdout) == (0, plain.stdout)
    assert "Node odd: takes nothing new: metadata.labels[nvidia.com/gpu.memory]: expected a whole" in result.stderr
    copy = run("-f", str(EXAMPLE), "--nodes", str(file), "--with-node", "odd")
    assert copy.exit_code == 1
    assert "--with-node odd: the devices of this node cannot be read; name another node to copy" in copy.stderr
    document = json.loads(plain.stdout)
    document["pools"][0]["servers"][0]["node"] = "odd"
    ran = tmp_path / "plan.json"
    ran.write_text(json.dumps(document))
    running = run("-f", str(EXAMPLE), "--nodes", str(file), "--from", str(ran))
    assert running.exit_code == 1
    assert (
        "the devices of node odd cannot be read; correct the node, or leave its servers out of the plan"
        in running.stderr
    )
