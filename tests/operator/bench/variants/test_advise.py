"""`argosy advise` on manifests and documents of results, and as the page on variants has it."""

import json
import re
import shlex
from pathlib import Path

import pytest
import yaml
from tests.docs.blocks import ROOT, blocks
from tests.operator.bench.measuring import results_of
from tests.operator.planning.declared import model_body
from typer.testing import CliRunner

from argosy.bench.results import document
from argosy.cli.application import application

SPEEDS = {"compiled": {1: 10.0, 8: 40.0, 64: 50.0}, "vllm": {1: 5.0, 8: 32.0, 64: 160.0}}
VARIANTS = [{"name": "compiled"}, {"name": "vllm"}]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    slo = {"latency": {"p95": "450ms"}, "queueDelay": {"p90": "5ms"}}
    body = model_body("chat", 1, variants=VARIANTS, slo=slo)
    (tmp_path / "chat.yaml").write_text(yaml.safe_dump(body))
    (tmp_path / "bench.json").write_text(json.dumps(document(results_of(SPEEDS))))
    return tmp_path


def advise(*arguments: str):
    return CliRunner().invoke(application(["advise"]), ["advise", *arguments])


FILES = ("-f", "chat.yaml", "--results", "bench.json")


@pytest.mark.usefixtures("folder")
def test_the_variant_that_suits_with_its_arithmetic() -> None:
    result = advise(*FILES, "--rate", "5")
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[0] == "compiled suits: of those that meet the objectives it has the fewest in flight, 0.5"
    assert lines[1].startswith(
        "compiled: 5/s x 0.1 s = 0.5 in flight: meets the objectives; a server answers up to 40/s"
    )
    assert result.stderr == "not judged: argosy bench does not measure slo.queueDelay\n"
    answer = json.loads(advise(*FILES, "--rate", "100", "-o", "json").stdout)
    assert (answer["variant"], [one["variant"] for one in answer["judgements"]]) == ("vllm", ["compiled", "vllm"])


@pytest.mark.usefixtures("folder")
def test_the_crossover_of_saved_results_as_a_patch() -> None:
    patch = yaml.safe_load(advise(*FILES, "-o", "patch").stdout)
    assert patch["metadata"] == {"name": "chat"}
    assert [entry["name"] for entry in patch["spec"]["variants"]] == ["compiled"]


def test_what_no_variant_meets_is_reported_by_the_exit_status(folder: Path) -> None:
    body = model_body("chat", 1, variants=VARIANTS, slo={"latency": {"p50": "1ms"}})
    (folder / "chat.yaml").write_text(yaml.safe_dump(body))
    result = advise(*FILES)
    assert (result.exit_code, result.stdout.splitlines()[0][:11]) == (2, "none suits:")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ("--prompt-tokens", "9999"),
            "there are results for 10 in and 5 out: measure with argosy bench --prompt-tokens",
        ),
        (("--model", "other"), "--model other: name one of chat"),
        (("--results", "chat.yaml"), "--results chat.yaml: "),
        (("--results", "/nope.json", "-f", "/nope.yaml"), "--results /nope.json: No such file or directory"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_wrong_input(arguments: tuple[str, ...], words: str) -> None:
    result = advise(*FILES, *arguments)
    assert result.exit_code == 1
    assert words in result.stderr


def test_models_without_variants_are_not_requested(folder: Path) -> None:
    (folder / "others.yaml").write_text(yaml.safe_dump_all([model_body("a", 1), model_body("b", 1)]))
    assert advise(*FILES, "-f", "others.yaml").exit_code == 0
    without = advise("-f", "others.yaml", "--results", "bench.json")
    assert (without.exit_code, without.stdout) == (1, "")
    assert "no InferenceModel here has spec.variants" in without.stderr
    (folder / "second.yaml").write_text(yaml.safe_dump(model_body("talk", 1, variants=VARIANTS)))
    assert "--model: name one InferenceModel of chat, talk" in advise(*FILES, "-f", "second.yaml").stderr


def test_a_variant_without_results_is_named(folder: Path) -> None:
    (folder / "bench.json").write_text(json.dumps(document(results_of(SPEEDS, ["chat--compiled", "chat--other"]))))
    (folder / "chat.yaml").write_text(yaml.safe_dump(model_body("chat", 1, variants=[*VARIANTS, {"name": "third"}])))
    result = advise(*FILES)
    assert result.exit_code == 1
    assert (
        "no endpoint is variant third: measure it with argosy bench third=URL --model third=chat--third"
        in result.stderr
    )


@pytest.mark.usefixtures("folder")
def test_the_command_of_the_page_on_variants() -> None:
    page = (ROOT / "docs/how-to/variants.md").read_text()
    (command,) = [one for block in blocks(page) for one in block.commands if re.match(r"argosy advise ", one)]
    result = advise(*shlex.split(command)[2:])
    assert result.exit_code == 0, result.output
    assert " suits: " in result.stdout
