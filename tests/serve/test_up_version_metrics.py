"""Rules and dashboards compare versions by what a server really has while two of them answer."""

import re
import urllib.request
from collections.abc import Iterator

import pytest
from e2e.parts.up import Up
from e2e.parts.versioned import NAME, VersionedModel
from prometheus_client.samples import Sample
from tests.chart.monitoring.files import DASHBOARDS, EVERY_RULE, expressions

pytestmark = pytest.mark.timeout(300)

ROLLOUT = """{
    steps: [{traffic: 50%, pause: 1h}],
    analysis: {warmUp: 0s, timeout: 2h, latency: {p50: 50}, errorRate: {acceptable: 1%, unacceptable: 20%}}}
"""
EXPRESSIONS = {rule["expr"] for rule in EVERY_RULE} | {
    one for board in DASHBOARDS.values() for one in expressions(board)
}
OF_VERSIONS = sorted(one for one in EXPRESSIONS if re.search(r"by \([^)]*\bversion\b", one))
SELECTOR = re.compile(r"\b((?:nv_|argosy_)\w+)(?:\{([^}]*)\})?")
MATCHER = re.compile(r'(\w+)(=~|=)"([^"]*)"')
OF_PROMETHEUS = {"namespace", "pool", "pod", "server", "instance"}
"""Labels that servers do not have: Prometheus adds them."""
OF_EVENTS = {"argosy_request_failures_total"}
"""Counters with a sample for each reason that there was; none failed here."""


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Sample]]:
    """Yield the metrics of a server on which version 2 of a model gets half of the requests."""
    model = VersionedModel(Up(tmp_path_factory.mktemp("versions")), ROLLOUT)
    model.declare(1)
    model.up.start()
    try:
        model.until("Stable", 1)
        model.declare(2)
        model.up.until("the step", lambda: model.up.ask(NAME)[0] == 200 and model.rollout.get("phase") == "Stepping")
        versions = (model.up.ask(NAME)[1]["outputs"][0]["data"][0] for _ in range(1000))
        assert {next(versions) for _ in range(40)} == {1, 2}
        with urllib.request.urlopen(f"http://127.0.0.1:{model.up.metrics}/metrics", timeout=30) as answer:
            yield [_sample(line) for line in answer.read().decode().splitlines() if not line.startswith("#")]
    finally:
        model.up.stop()


def _sample(line: str) -> Sample:
    """Return a sample as Prometheus reads it; the client's parser would rename counters without `_total`."""
    name, labels, value = re.fullmatch(r"([\w:]+)(?:\{(.*)\})? (\S+)", line).groups()
    return Sample(name, dict(re.findall(r'(\w+)="([^"]*)"', labels or "")), float(value))


def _matches(sample: Sample, matchers: str) -> bool:
    for label, how, value in MATCHER.findall(matchers or ""):
        if "$" in value or label in OF_PROMETHEUS:
            continue
        pattern = value if how == "=~" else re.escape(value)
        if not re.fullmatch(pattern, sample.labels.get(label, "")):
            return False
    return True


def test_there_are_such_expressions() -> None:
    assert len(OF_VERSIONS) >= 8


@pytest.mark.parametrize("expression", OF_VERSIONS)
def test_the_metrics_of_an_expression_have_samples_of_both_versions(samples: list[Sample], expression: str) -> None:
    labels = {label for names in re.findall(r"by \(([^)]*)\)", expression) for label in names.split(", ")}
    for name, matchers in SELECTOR.findall(expression):
        own = [sample for sample in samples if sample.name == name and sample.labels.get("model") == NAME]
        if name not in OF_EVENTS:
            selected = [sample for sample in own if _matches(sample, matchers)]
            assert {sample.labels.get("version") for sample in selected} == {"1", "2"}, name
            assert labels - OF_PROMETHEUS <= selected[0].labels.keys(), name


def test_the_split_is_measured(samples: list[Sample]) -> None:
    routed = [sample for sample in samples if sample.name == "argosy_version_requests_total" and sample.value]
    assert {(sample.labels["version"], sample.labels["by"]) for sample in routed} == {("1", "weight"), ("2", "weight")}
