"""Mistakes of people: the error is where they look, names the cause and the way out, and hurts nothing else."""

import json
import socket
from typing import Any

import httpx
import pytest
from tests.acceptance.broken import Broken, prepare
from tests.acceptance.running import PIPE, Asking, Starter, Up, Workspace, model, servers_of, wait_for

MEND = "mend its files or the manifest and it is loaded again by itself"
DEADLINE = "{parameters: {LOAD_TIMEOUT_SECONDS: {string_value: '1'}}}"
FOREVER = "__import__('time').sleep(600)"
GOOD_ONNX = "onnx/model.onnx"
MODELS = (
    Broken("corrupt", ("Protobuf parsing failed", "model.onnx", MEND)),
    Broken("raises", ("ValueError: no weights", "model.py(7)", MEND), "python", body="raise ValueError('no weights')"),
    Broken("hangs", ("still loading after 1 s", "LOAD_TIMEOUT_SECONDS"), "python", body=FOREVER, config=DEADLINE),
    Broken("exits", ("exited with code 3", "server.log", MEND), "python", body="__import__('os')._exit(3)"),
    Broken("wrong-dims", ("tensor 'X'", "[4]", "[5]", MEND), source=GOOD_ONNX, dims="[5]"),
    Broken("wrong-type", ("TYPE_INT64", "'X'", "TYPE_FP32", MEND), source=GOOD_ONNX, data_type="TYPE_INT64"),
    Broken("wrong-input", ("input 'Z'", "allowed inputs are: X", MEND), source=GOOD_ONNX, input="Z"),
    Broken("wrong-output", ("output 'W'", "allowed outputs are: Y", MEND), source=GOOD_ONNX, output="W"),
    Broken("no-weights", ("unable to find 'model.onnx'", "manifests/other holds notes.txt", MEND), source="other"),
    Broken("no-code", ("not found in 'model.py'", "manifests/other holds notes.txt", MEND), "python", source="other"),
    Broken(
        "nowhere",
        ("spec.storageUri", "no such file or folder", "not/here", "correct spec.storageUri"),
        source="not/here",
        reason="DownloadFailed",
    ),
)


def test_models_that_do_not_load_say_why_alongside_one_that_serves(workspace: Workspace, up: Starter) -> None:
    prepare(workspace, MODELS)
    (workspace.manifests / "corrupt").mkdir()
    (workspace.manifests / "corrupt" / "model.onnx").write_bytes(b"\x08\x07 no protobuf")
    (workspace.manifests / "other").mkdir()
    (workspace.manifests / "other" / "notes.txt").write_text("weights follow")
    workspace.write_model("double", 2.0)
    good = model("good", 1, "double")
    workspace.write(good)
    run = up()
    run.until_ready("good")
    with Asking(run, "good", 2.0) as asking:
        workspace.write(good, *(broken.manifest for broken in MODELS))
        for broken in MODELS:
            wait_for(
                lambda name=broken.name: run.condition(name, "Stalled").get("status") == "True", lambda: run.output
            )
            status = run.got(broken.name) if broken.name == "corrupt" else run.statuses()[broken.name]
            _explains(broken, status, run)
        assert run.condition("good")["status"] == "True"
        workspace.write(good)
        wait_for(lambda: set(run.statuses()) == {"good", "laptop"}, lambda: run.output)
    assert asking.failures == []
    assert asking.answers > 10


def _explains(broken: Broken, status: dict[str, Any], run: Up) -> None:
    ready = next(condition for condition in status["conditions"] if condition["type"] == "Ready")
    assert (ready["status"], ready["reason"]) == ("False", broken.reason), broken.name
    assert "\n" not in ready["message"]
    for words in broken.says:
        assert words in ready["message"], broken.name
    assert status["versions"][0]["state"] == "Failed"
    run.until_says(f"InferenceModel {broken.name} v1: Ready=False ({broken.reason}): {ready['message']}\n")


DIES = """
        if pb_utils.get_input_tensor_by_name(requests[0], "X").as_numpy() < 0:
            __import__("os")._exit(4)
"""


def test_a_model_that_dies_while_it_works_fails_its_request_and_comes_back(workspace: Workspace, up: Starter) -> None:
    workspace.write_model("double", 2.0)
    workspace.write_model("fragile", 3.0)
    code = workspace.manifests / "fragile" / "model.py"
    code.write_text(code.read_text().replace("        return [\n", f"{DIES}        return [\n"))
    workspace.write(model("good", 1, "double"), model("fragile", 1, "fragile"))
    run = up()
    run.until_ready("good", "fragile")
    with Asking(run, "good", 2.0) as asking:
        answer = _post(run, "fragile", {"name": "X", "datatype": "FP32", "shape": [1, 1], "data": [-1.0]})
        assert answer.status_code == 500
        assert "exited with code 4" in answer.json()["error"]
        wait_for(lambda: _answers(run, "fragile", 3.0), lambda: run.output)
    assert asking.failures == []
    run.until_ready("fragile")


def test_requests_that_do_not_fit_are_refused_in_words(workspace: Workspace, up: Starter) -> None:
    workspace.write_model("double", 2.0)
    workspace.write(model("good", 1, "double"))
    run = up()
    run.until_ready("good")
    right = {"name": "X", "datatype": "FP32", "shape": [1, 1], "data": [1.0]}
    for wrong, words in (
        ({"datatype": "INT64", "data": [1]}, ("'X'", "INT64", "FP32")),
        ({"name": "Q"}, ("unexpected inference input 'Q' for model 'good'",)),
        ({"shape": [1, 1, 1]}, ("'X'", "[1,1,1]", "[-1,-1]")),
        ({"shape": [9, 1], "data": [1.0] * 9}, ("batch-size must be <= 8",)),
        ({"shape": [1, 2]}, ("Failed to parse 'data' field: shape does not match true shape",)),
        ({"data": ["one"]}, ("data",)),
    ):
        answer = _post(run, "good", right | wrong)
        assert answer.is_error, wrong
        for word in words:
            assert word in answer.json()["error"], wrong
        assert _post(run, "good", right).json()["outputs"][0]["data"] == [2.0]
    assert "failed to parse the request JSON" in httpx.post(f"{run.url}/v2/models/good/infer", content=b"{no").text
    assert "unknown model: 'god'" in _post(run, "god", right).json()["error"]


def test_a_port_that_another_program_has_is_named(workspace: Workspace, up: Starter) -> None:
    workspace.write_model("double", 2.0)
    workspace.write(model("good", 1, "double"))
    with socket.socket() as other:
        other.bind(("127.0.0.1", up.ports[2]))
        other.listen()
        run = up()
        assert run.process.wait(60) == 1
    assert f"port {up.ports[2]} on 127.0.0.1 is in use by another program" in run.output
    assert "--metrics-port" in run.output
    assert servers_of(workspace) == []


GOOD = model("good", 1, "double")
TYPO = GOOD.replace("maxBatchSize", "maxBachSize")
TWIN = model("twin", 1, "double") * 2
LONER = model("loner", 1, "double").replace("poolRef: {name: laptop}", "poolRef: {name: laptopp}")
RING = (PIPE.replace("one", "ring"), PIPE.replace("pipe", "ring").replace("one", "pipe"))
CYCLE = "".join(RING).replace("two", "good")
EDITS = {
    "typo": ((TYPO,), "good", ("spec.maxBachSize: unknown field", "did you mean 'maxBatchSize'?", "still served")),
    "twins": ((GOOD, TWIN), "twin", ("there are two of InferenceModel default/twin", "rename one or remove it")),
    "unknown pool": ((GOOD, LONER), "loner", ("no ServingPool 'laptopp'", "did you mean 'laptop'?")),
    "cycle": ((GOOD, CYCLE), "pipe", ("the ensembles hold each other: pipe → ring → pipe",)),
}


def test_edits_that_are_wrong_are_reported_and_change_nothing(workspace: Workspace, up: Starter) -> None:
    workspace.write_model("double", 2.0)
    workspace.write(GOOD)
    run = up()
    run.until_ready("good")
    with Asking(run, "good", 2.0) as asking:
        for documents, name, words in EDITS.values():
            workspace.write(*documents)
            wait_for(lambda name=name: run.condition(name, "Valid").get("status") == "False", lambda: run.output)
            status = run.got(name)
            ready = next(condition for condition in status["conditions"] if condition["type"] == "Ready")
            assert ready["status"] == "False"
            for word in words:
                assert word in ready["message"], name
            run.until_says(words[0])
            assert words[0] in run.got_errors
            workspace.write(GOOD)
            run.until_ready("good")
            wait_for(lambda: set(run.statuses()) == {"good", "laptop"}, lambda: run.output)
    assert asking.failures == []
    assert "all manifests are valid again" in run.output


@pytest.mark.parametrize("case", EDITS)
def test_once_starts_nothing_where_a_manifest_is_wrong(workspace: Workspace, up: Starter, case: str) -> None:
    documents, _, words = EDITS[case]
    workspace.write(*documents)
    run = up("--once")
    assert run.process.wait(60) == 1
    assert words[0] in run.output
    assert str(workspace.manifests / "all.yaml") in run.output
    assert servers_of(workspace) == []


def test_a_start_without_one_right_resource_starts_nothing(workspace: Workspace, up: Starter) -> None:
    (workspace.manifests / "all.yaml").write_text(TYPO)
    run = up()
    assert run.process.wait(60) == 1
    assert run.output.count("spec.maxBachSize: unknown field") == 1
    assert "still served" not in run.output
    assert servers_of(workspace) == []


def test_at_the_start_too_what_is_right_is_served_and_the_rest_is_named(workspace: Workspace, up: Starter) -> None:
    workspace.write_model("double", 2.0)
    workspace.write(GOOD, LONER, TWIN)
    (workspace.manifests / "broken.yaml").write_text("a: [")
    run = up()
    run.until_ready("good")
    assert run.infer("good", 1.0) == 2.0
    for words in ("no ServingPool 'laptopp'", "there are two of InferenceModel default/twin", "broken.yaml"):
        assert words in run.output


def _post(run: Up, name: str, tensor: dict[str, Any]) -> httpx.Response:
    return httpx.post(f"{run.url}/v2/models/{name}/infer", content=json.dumps({"inputs": [tensor]}), timeout=20)


def _answers(run: Up, name: str, expected: float) -> bool:
    try:
        return run.infer(name, 1.0) == expected
    except AssertionError:
        return False
