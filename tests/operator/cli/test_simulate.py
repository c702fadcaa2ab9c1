"""`argosy simulate`: what it tells, what it writes, and every problem of a bad input."""

import json
from pathlib import Path

import pytest
import typer
from click.testing import Result
from typer.testing import CliRunner

from argosy.cli.simulation.simulate import simulate
from argosy.simulation import traces

MANIFEST = """
apiVersion: argosy.dev/v1alpha1
kind: ServingPool
metadata: {name: pool}
spec: {runtime: {name: argosy}}
---
apiVersion: argosy.dev/v1alpha1
kind: InferenceModel
metadata: {name: embed}
spec:
  poolRef: {name: pool}
  modelFormat: {name: onnx}
  version: 1
  storageUri: file:///models/embed
  maxBatchSize: 8
  minReplicas: 1
  maxReplicas: 6
  slo: {latency: {p99: 500ms}}
"""
SERVICE = "embed: {seconds: {1: 0.03, 8: 0.1}, slowdown: [1, 1.6]}\n"


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "models.yaml").write_text(MANIFEST)
    curves = tmp_path / "curves"
    curves.mkdir()
    (curves / "service.yaml").write_text(SERVICE)
    ramp = traces.ramp(120, seconds=300).arrivals
    (tmp_path / "embed.csv").write_text("time\n" + "".join(f"{at:.3f}\n" for at in ramp))
    return tmp_path


def run(files: Path, *more: str | Path, **other: Path) -> Result:
    app = typer.Typer()
    app.command()(simulate)
    provided = {"f": files / "models.yaml", "t": files / "embed.csv", "s": files / "curves" / "service.yaml"} | other
    arguments = [part for name, value in provided.items() for part in (f"-{name}", str(value))]
    return CliRunner().invoke(app, [*arguments, *map(str, more)])


def test_a_ramp_is_served_and_reported(files):
    result = run(files, "-b", "hpa", "-b", "kpa=6")
    assert result.exit_code == 0, result.output
    for word in ("argosy", "hpa", "kpa=6", "500 ms", "GPU-hours", "requests/s come"):
        assert word in result.stdout


def test_the_json_has_all_of_it(files):
    result = json.loads(run(files, "-o", "json", "-b", "hpa").stdout)
    ours = result["argosy"]["embed"]
    assert set(result) == {"argosy", "hpa"}
    assert ours["late"] == pytest.approx(ours["violations"] * ours["requests"], abs=1)
    assert max(ours["timeline"]["desiredReplicas"]) > 1
    assert {len(values) for values in ours["timeline"].values()} == {299 // 5}
    assert all(change["message"] for change in ours["changes"])


def test_a_full_fleet_holds_less(files):
    ours = json.loads(run(files, "-o", "json", "--gpus", "1").stdout)["argosy"]["embed"]
    assert max(ours["timeline"]["readyReplicas"]) == 1
    assert ours["gpuHours"] == pytest.approx(300 / 3600, rel=0.02)


def test_a_fleet_holds_the_first_replicas(files):
    (files / "two.yaml").write_text(MANIFEST.replace("minReplicas: 1", "minReplicas: 2"))
    result = run(files, "--gpus", "1", f=files / "two.yaml")
    assert (result.exit_code, result.stderr) == (1, "--gpus 1: the models' first replicas take 2; pass 2 or more\n")


def test_a_trace_that_ends_before_a_decision_has_the_first_replicas(files):
    (files / "short.csv").write_text("time\n0\n1\n2\n")
    result = run(files, t=files / "short.csv")
    assert result.exit_code == 0, result.output
    assert "1 to 1" in result.stdout


@pytest.mark.parametrize(("name", "begins"), [("out.svg", b"<?xml"), ("out.png", b"\x89PNG")])
def test_it_is_drawn(files, name, begins):
    pytest.importorskip("matplotlib", reason="matplotlib draws it: pip install 'argosy[pictures]'")
    assert run(files, "--plot", files / name, "-b", "hpa").exit_code == 0
    assert (files / name).read_bytes().startswith(begins)


@pytest.mark.parametrize(
    ("broken", "text", "says"),
    [
        (
            "t",
            "time,model\n1,other\n",
            "the trace has requests for other, which is no InferenceModel here; there are embed",
        ),
        ("t", "when\n1\n", "line 1: the columns need a time"),
        ("t", "time\n1\n9e14\n", "line 3: time is 899,999,999,999,999 s after the first"),
        ("t", f"time\n{'1' * 131073}\n", "line 2: is no line of a CSV"),
        ("t", "HashFunction,1\nf,0\n", "holds no request: the counts of all minutes are 0"),
        ("s", "embed: {seconds: {.inf: 1}}\n", "embed: seconds: must be a finite number; found inf"),
        ("s", "embed: {seconds: {1: .inf}}\n", "embed: seconds[1]: must be a finite number; found inf"),
        (
            "s",
            "embed: {seconds: {1000000000: 1}}\n",
            "seconds: its keys must be whole numbers from 1 to 65536; found 1000000000",
        ),
        ("s", "other: {seconds: {1: 1}}\n", "--service: has no entry for embed"),
        ("s", "embed: {seconds: {1: -1}}\n", "embed: seconds[1]: must be more than 0 seconds; found -1"),
        (
            "s",
            "embed: {seconds: {1: 38ms}}\n",
            "embed: seconds[1]: expected a number of seconds, such as 0.038, without a unit; found '38ms'",
        ),
        ("s", "embed: {seconds: {0: 1}}\n", "embed: seconds: its keys must be whole numbers from 1 to 65536; found 0"),
        (
            "s",
            "embed: {seconds: {1.5: 1}}\n",
            "embed: seconds: its keys must be whole numbers from 1 to 65536; found 1.5",
        ),
        ("s", "embed: {seconds: {1: 1}, slowdown: [1, 0.5]}\n", "embed: slowdown[1]: must be 1 or more; found 0.5"),
        ("s", "embed: {seconds: {1: 1}, slowdown: 2}\n", "embed: slowdown: expected a list of numbers"),
        ("s", "embed: {seconds: {1: 1}, variation: 1}\n", "embed: variation: must be from 0 to below 1; found 1"),
        (
            "s",
            "embed: {stepSeconds: {1: 1}, promptTokenSeconds: -1}\n",
            "embed: promptTokenSeconds: must be 0 or more; found -1",
        ),
        ("s", "embed: {stepSeconds: {1: 1}, slowdown: [1]}\n", "embed: unknown field slowdown; with stepSeconds there"),
        (
            "s",
            SERVICE + "embedd: {seconds: {1: 1}}\n",
            "--service: has an entry for embedd, which is no InferenceModel here; there are embed",
        ),
        ("s", "embed: {second: {1: 1}}\n", "embed: write seconds:"),
        ("s", "embed: {seconds: {1: 1}, speed: 2}\n", "embed: unknown field speed"),
        ("s", "[]\n", "must be one mapping of models"),
        ("s", "embed: {stepSeconds: {1: 1}}\n", "spec.slo.timeToFirstToken is not set"),
        ("f", MANIFEST.replace("slo: {latency: {p99: 500ms}}", ""), "spec.slo.latency is not set"),
        ("f", MANIFEST.replace("minReplicas: 1", "minReplicas: 9"), "spec.maxReplicas: is 6, less than minReplicas 9"),
    ],
)
def test_bad_input_is_refused_in_words(files, broken, text, says):
    file = files / ("broken.csv" if broken == "t" else "curves/broken.yaml")
    file.write_text(text)
    result = run(files, **{broken: file})
    assert result.exit_code == 1
    assert says in " ".join(result.stderr.split())


def test_a_trace_may_begin_with_a_byte_order_mark(files):
    trace = files / "embed.csv"
    trace.write_bytes(b"\xef\xbb\xbf" + trace.read_bytes())
    assert run(files).exit_code == 0


def test_two_traces_of_one_model_are_refused(files):
    other = files / "curves" / "embed.csv"
    other.write_text("time\n1\n")
    result = run(files, "-t", other)
    assert result.exit_code == 1
    says = f"{other}: has requests for embed, as {files / 'embed.csv'} has; put them into one file"
    assert says in " ".join(result.stderr.split())


def test_a_backlog_of_any_length_is_answered(files):
    (files / "curves" / "service.yaml").write_text("embed: {seconds: {1: 1.0e+11}}\n")
    ours = json.loads(run(files, "-o", "json").stdout)["argosy"]["embed"]
    assert ours["late"] == ours["requests"]


@pytest.mark.parametrize(
    ("option", "value", "says"),
    [
        ("--beside", "vpa", "--beside vpa: is none of hpa, keda, kpa"),
        ("--beside", "hpa=soon", "the target must be a number above 0 and at most 1, such as hpa=0.6"),
        ("--beside", "hpa=80", "--beside hpa=80: the target must be a number above 0 and at most 1, such as hpa=0.6"),
        ("--beside", "keda=0", "--beside keda=0: the target must be a number above 0, such as keda=4"),
        ("--beside", "kpa=inf", "--beside kpa=inf: the target must be a number above 0, such as kpa=4"),
        ("--gpus", "0", "--gpus 0: the models' first replicas take 1; pass 1 or more"),
        ("--gpus", "nan", "--gpus nan: the models' first replicas take 1; pass 1 or more"),
        ("--startup", "soon", "--startup: 'soon' is no duration"),
        ("--plot", "out.gif", "must end with .png or .svg"),
        ("--plot", "nowhere/out.svg", "there is no folder nowhere"),
    ],
)
def test_bad_options_are_refused_in_words(files, option, value, says):
    result = run(files, option, value)
    assert result.exit_code == 1
    assert says in result.stderr


QUERY = "{name: jobs, query: jobs, target: 1}"
NIGHT = "{name: night, minReplicas: 5}"
IGNORED = f"{{targets: {{tokensPerSecond: 9, queries: [{QUERY}]}}, holdTimeout: 1m, schedules: [{NIGHT}]}}"


def test_fields_that_are_not_simulated_are_reported(files):
    slo = "slo: {latency: {p99: 500ms}, errorRate: 1%, timeToFirstToken: {p99: 1s}}"
    file = files / "ignored.yaml"
    file.write_text(MANIFEST.replace("slo: {latency: {p99: 500ms}}", f"{slo}\n  scaling: {IGNORED}"))
    result = run(files, "-o", "json", f=file)
    assert result.exit_code == 0, result.output
    assert result.stderr == (
        "InferenceModel embed: not simulated: spec.slo.errorRate, spec.slo.timeToFirstToken, "
        "spec.scaling.targets.tokensPerSecond, spec.scaling.targets.queries, spec.scaling.holdTimeout, "
        "spec.scaling.schedules\n"
    )
    assert json.loads(result.stdout) == json.loads(run(files, "-o", "json").stdout)


def test_nothing_is_reported_of_a_manifest_whose_fields_are_simulated(files):
    assert run(files).stderr == ""
