"""What a newcomer gets wrong: the message names the file or the field, and the way out; the exit status is 1."""

from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from argosy.cli.application import application

EXAMPLE = Path(__file__).parents[3] / "examples" / "llama-70b"
NODES = str(EXAMPLE / "nodes.yaml")
POOL = "apiVersion: argosy.dev/v1alpha1\nkind: ServingPool\nmetadata: {name: p}\n"
MODEL = "apiVersion: argosy.dev/v1alpha1\nkind: InferenceModel\nmetadata: {name: m}\nspec:\n"


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(application([arguments[0]]), arguments)


@pytest.mark.parametrize(
    "command",
    [
        ("plan", "--nodes", NODES),
        ("render", "-o", "out"),
        ("build",),
        ("simulate", "-t", "trace.csv", "-s", "service.yaml"),
        ("engines", "list", "--store", "file:/x"),
    ],
    ids=lambda command: command[0],
)
def test_a_missing_manifest_is_named(command: tuple[str, ...]) -> None:
    result = run(*command, "-f", "missing.yaml")
    assert result.exit_code == 1
    assert "missing.yaml: there is no such file or folder" in result.stderr.splitlines()


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ("missing.yaml", "missing.yaml: there is no such file or folder"),
        (".", ".: is a folder; name a file"),
        ("binary", "binary: is no text in UTF-8"),
        ("empty", "empty: holds no Node; write nodes to a file with: kubectl get nodes -o yaml > nodes.yaml"),
    ],
)
def test_wrong_nodes_are_named(nodes: str, message: str) -> None:
    Path("binary").write_bytes(b"\xff\xfe")
    Path("empty").touch()
    result = run("plan", "-f", str(EXAMPLE), "--nodes", nodes)
    assert (result.exit_code, result.stderr.splitlines()) == (1, [message])


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("{poolRef: p}", "spec.poolRef: expected a map of fields; found 'p'; write {name: p}"),
        ("{modelFormat: onnx}", "spec.modelFormat: expected a map of fields; found 'onnx'; write {name: onnx}"),
        ("{batching: fast}", "spec.batching: expected a map of fields; found 'fast'"),
        ('{version: "1"}', "spec.version: expected a whole number; found '1'; write it without quotes: 1"),
        ("{version: one}", "spec.version: expected a whole number; found 'one'"),
        ("{storageUri: models/m}", "file:; for files of this machine write file:models/m"),
    ],
)
def test_a_value_of_another_type_is_shown_as_it_is_written(spec: str, message: str) -> None:
    Path("m.yaml").write_text(f"{MODEL}  {spec}\n")
    result = run("plan", "-f", "m.yaml", "--nodes", NODES)
    assert result.exit_code == 1
    assert any(line.endswith(message) for line in result.stderr.splitlines()), result.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("plan", "-o", "png"),
        ("plan", "--bogus"),
        ("plan", "--prove", "--prove-limit", "0"),
        ("rollout", "--bogus"),
        ("rollout", "status", "--bogus"),
        ("rollout", "status"),
        ("engines", "list", "--bogus"),
        ("plan", "--cluster", "--kubeconfig", "/nonexistent"),
        ("profile", "--bogus"),
        ("profile", "m", "--seconds", "0"),
        ("profile",),
        ("render", "--bogus"),
        ("replay",),
        ("bench", "--bogus"),
        ("advise", "--bogus"),
    ],
    ids=" ".join,
)
def test_options_that_cannot_be_are_wrong_input(arguments: tuple[str, ...]) -> None:
    """Of these commands exit status 2 says what came of the input."""
    result = run(*arguments)
    assert (result.exit_code, result.stdout) == (1, "")
    assert "Usage: " in result.stderr


def test_tabs_are_named() -> None:
    Path("m.yaml").write_text(f"{MODEL}\tversion: 1\n")
    result = run("plan", "-f", "m.yaml", "--nodes", NODES)
    assert result.stderr.startswith("m.yaml: line 5: not YAML: ")
    assert result.stderr.endswith("; indent with spaces\n")


def test_several_files_are_read_together() -> None:
    files = [argument for name in ("pool", "models", "ensemble") for argument in ("-f", str(EXAMPLE / f"{name}.yaml"))]
    apart = run("plan", *files, "--nodes", NODES, "-o", "json")
    assert apart.exit_code == 0, apart.stderr
    assert apart.stdout == run("plan", "-f", str(EXAMPLE), "--nodes", NODES, "-o", "json").stdout
    twice = run("plan", *files, "-f", str(EXAMPLE / "pool.yaml"), "--nodes", NODES)
    assert "there are two of ServingPool default/chat, one in the same file; rename one or remove it" in twice.stderr


def test_missing_files_of_a_model_are_named_with_the_model() -> None:
    text = "{poolRef: {name: p}, modelFormat: {name: python}, version: 1, storageUri: 'file:away'}"
    Path("m.yaml").write_text(f"{POOL}---\n{MODEL}  {text}\n")
    result = run("render", "-f", "m.yaml", "-o", "out")
    assert result.exit_code == 1
    assert result.stderr.startswith("m: file:")
    assert "correct spec.storageUri, or put the files there" in result.stderr


def test_a_misspelt_kind_is_named_before_the_state() -> None:
    result = run("get", "ensmbles")
    assert (result.exit_code, result.stderr) == (
        1,
        "'ensmbles' is no kind of resource; did you mean 'ensembles'?\n",
    )
