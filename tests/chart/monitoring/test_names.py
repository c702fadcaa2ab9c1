"""Every metric that rules and dashboards ask for is one that servers or the operator have.

The metrics of servers are those of docs/metrics.md, which tests/docs/test_metrics.py compares with a server. Those of
the operator and an activator come from their own code, those of other servers from what the operator reads of them.
"""

import re
from pathlib import Path
from typing import Any

import pytest
from tests.chart.monitoring.files import DASHBOARDS, EVERY_RULE, RECORDS, expressions, variables

from argosy.autoscaling.metrics.names import Counter
from argosy.autoscaling.metrics.version_counts import OWN_FAILURES
from argosy.controller.metrics.metrics import Metrics
from argosy.signals.samples import SAMPLE_NAMES
from argosy_agent.activator.metrics import Metrics as ActivatorMetrics

DOCUMENT = Path(__file__).parents[3] / "docs" / "metrics.md"
OURS = re.compile(r"\b(?:nv_|argosy_|vllm:)\w+|\bargosy:[\w:]+")
PARTS = re.compile(r"_(bucket|sum|count)$")
EXPRESSIONS = {rule["expr"] for rule in EVERY_RULE}
RECORDED = {rule["record"] for rule in RECORDS}


def queried(expressions: set[str]) -> set[str]:
    """Return the names of metrics in PromQL; quoted text is left out."""
    return {name for expr in expressions for name in OURS.findall(re.sub(r'"[^"]*"', '""', expr))}


def shown(dashboard: dict[str, Any]) -> set[str]:
    """Return its queries, and those that fill its variables."""
    return {*expressions(dashboard), *(metric for _, metric in variables(dashboard))}


def of_servers() -> dict[str, str]:
    """Return the names and kinds of docs/metrics.md."""
    rows = re.findall(r"^\| `((?:nv_|argosy_|vllm:)\w+)` \| (\w+) \|", DOCUMENT.read_text(), re.MULTILINE)
    return dict(rows)


def of_the_operator() -> dict[str, str]:
    """Return the metrics of an operator without resources."""
    metrics = Metrics()
    metrics.collect(list)
    lines = metrics.text().decode().splitlines()
    return {line.split()[2]: line.split()[3] for line in lines if line.startswith("# TYPE ")}


def of_an_activator() -> dict[str, str]:
    """Return the metrics of an activator."""
    lines = ActivatorMetrics().text().splitlines()
    return {line.split()[2]: line.split()[3] for line in lines if line.startswith("# TYPE ")}


OF_OTHERS = {name for name in SAMPLE_NAMES if name.startswith(("vllm:", "nv_cache_"))}
"""vLLM's own, and of NVIDIA's server the response cache's, which the bundled one does not have."""


def exists(name: str) -> bool:
    """Return whether it is a sample's name: a histogram's, and only a histogram's, ends with a part of it."""
    fields = {**of_servers(), **of_the_operator(), **of_an_activator()}
    if fields.get(PARTS.sub("", name)) == "histogram":
        return PARTS.search(name) is not None
    return name in fields or name in OF_OTHERS or name in RECORDED


@pytest.mark.parametrize("name", sorted(queried(EXPRESSIONS)))
def test_what_rules_ask_for_is_there(name: str) -> None:
    assert exists(name)


@pytest.mark.parametrize("name", DASHBOARDS)
def test_what_dashboards_ask_for_is_there(name: str) -> None:
    assert {metric for metric in queried(shown(DASHBOARDS[name])) if not exists(metric)} == set()


def test_what_is_recorded_is_looked_at() -> None:
    used = queried(EXPRESSIONS | {expr for dashboard in DASHBOARDS.values() for expr in shown(dashboard)})
    assert used >= RECORDED


def test_the_failures_of_a_version_are_those_that_a_verdict_counts() -> None:
    (ratio,) = (rule["expr"] for rule in RECORDS if rule["record"] == "argosy:version_error:ratio_rate5m")
    reasons = "|".join(failure.name for failure in OWN_FAILURES)
    by_version = "sum by (namespace, pool, model, version) (rate({}[5m]))"
    own = by_version.format(f'argosy_request_failures_total{{reason=~"{reasons}"}}')
    (errors,), (answered,) = Counter.MODEL_ERRORS.value, Counter.ANSWERED.value
    failed, requests = f"{own} + {by_version.format(errors)}", f"{by_version.format(answered)} + {own}"
    assert ratio == f"({failed}) / ({requests} > 0)"


def test_a_name_that_no_one_exports_would_be_detected() -> None:
    assert queried({'sum(rate(nv_inference_foo{a="argosy_bar"}[5m]))'}) == {"nv_inference_foo"}
    assert not exists("nv_inference_foo")
    assert not exists("argosy_request_duration_seconds")
    assert exists("argosy_request_duration_seconds_bucket")
