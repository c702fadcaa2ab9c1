"""docs/metrics.md names exactly what a server answers, each with its kind and its labels."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.serve.process import Serving, start, wait_until

DOCUMENT = Path(__file__).parents[2] / "docs" / "metrics.md"

TENSORS = """
max_batch_size: 8
input [ { name: "X" data_type: TYPE_FP32 dims: [ 1 ] } ]
output [ { name: "Y" data_type: TYPE_FP32 dims: [ 1 ] } ]
"""
CONFIGS = {
    "plain": f'backend: "python" {TENSORS} dynamic_batching {{ max_queue_delay_microseconds: 500 }}',
    "kept": f'backend: "python" {TENSORS} response_cache {{ enable: true }}',
    "streams": f'backend: "python" {TENSORS} model_transaction_policy {{ decoupled: true }}',
    "pair": f"""platform: "ensemble" {TENSORS} ensemble_scheduling {{ step [ {{ model_name: "plain" model_version: -1
        input_map {{ key: "X" value: "X" }} output_map {{ key: "Y" value: "Y" }} }} ] }}""",
}
MODEL = """
class TritonPythonModel:
    def execute(self, requests):
        return None
"""


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    """Yield the metrics of a server of a plain model, a cached one, a decoupled one and an ensemble."""
    folder = tmp_path_factory.mktemp("metrics")
    for name, config in CONFIGS.items():
        version = folder / "models" / name / "1"
        version.mkdir(parents=True)
        (version / "model.py").write_text(MODEL)
        (folder / "models" / name / "config.pbtxt").write_text(config)
    explicit = ["--model-control-mode=explicit", "--load-on-demand=true", *[f"--load-model={name}" for name in CONFIGS]]
    metrics = ["--metrics-config=summary_latencies=true", "--metrics-interval-ms=50"]
    flags = ["--cache-config=local,size=1000000", *explicit, *metrics]
    serving: Serving = start(folder / "models", folder / "server.log", *flags)
    try:
        serving.wait_until_ready()
        wait_until(lambda: "nv_cpu_utilization " in serving.metrics(), serving.log)
        yield serving.metrics().splitlines()
    finally:
        serving.end()


def table() -> list[list[str]]:
    """Return the rows of the document's tables of metrics."""
    rows = [
        line.strip("| ").split(" | ")
        for line in DOCUMENT.read_text().splitlines()
        if re.match(r"\| `(nv_|argosy_|vllm:)", line)
    ]
    assert rows
    return rows


def test_every_metric_is_there_with_its_kind_and_no_other(lines):
    exposed = {line.split()[2]: line.split()[3] for line in lines if line.startswith("# TYPE ")}
    assert {row[0].strip("`"): row[1] for row in table()} == exposed


OF = {
    "all": {"plain", "kept", "streams", "pair"},
    "models": {"plain", "kept", "streams"},
    "decoupled": {"streams"},
    "cached": {"kept"},
    "uncached": {"plain", "streams", "pair"},
}


def test_every_one_is_of_the_models_that_the_table_says(lines):
    exposed: dict[str, set[str]] = {}
    for line in lines:
        if match := re.match(r'(\w+?)(?:_bucket|_sum|_count)?\{model="(\w+)",version="1"[,}]', line):
            for name in (match[1], line.split("{")[0]):
                exposed.setdefault(name, set()).add(match[2])
    for row in table():
        if row[2] in OF:
            assert exposed[row[0].strip("`")] == OF[row[2]], row[0]


def test_reasons_and_labels_are_those_that_are_reported(lines):
    for row in table():
        name, meaning = row[0].strip("`"), row[-1]
        if "by `reason`" in meaning:
            reasons = {match[1] for line in lines if (match := re.match(rf'{name}\{{.*reason="(\w+)"', line))}
            assert reasons == set(re.findall(r"[A-Z_]{5,}", meaning)), name
        elif row[2] == "none":
            assert any(re.match(rf"{name} [\d.]+$", line) for line in lines), name
        elif row[2].startswith("`"):
            labels = set(re.findall(r"`(\w+)`", row[2]))
            samples = [line for line in lines if line.startswith(name + "{")]
            assert all(set(re.findall(r'(\w+)="', line)) == labels for line in samples), name
