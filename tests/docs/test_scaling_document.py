"""The pages on bottlenecks and monitoring name the rules, the alerts and the operator's metrics that there are."""

import re
from pathlib import Path

from tests.chart.monitoring.files import ALERTS

from argosy.autoscaling.bottlenecks.rules import RULES
from argosy.controller.metrics.metrics import Metrics

PAGES = ("explanation/bottlenecks.md", "monitoring.md")
TEXT = "\n".join((Path(__file__).parents[2] / "docs" / page).read_text() for page in PAGES)


def rows(beginning: str) -> list[list[str]]:
    """Return the cells of the tables' rows whose first cell begins so."""
    return [line.strip("| ").split(" | ") for line in TEXT.splitlines() if re.match(rf"\| `{beginning}", line)]


def test_the_table_of_rules_is_the_codes() -> None:
    kinds = {rule.kind for rule in RULES}
    table = [row for row in rows("[A-Z]") if row[0].strip("`") in kinds]
    assert [row[0].strip("`") for row in table] == [rule.kind for rule in RULES]


def test_the_thresholds_are_the_codes() -> None:
    kinds = {rule.kind for rule in RULES}
    table = [row for row in rows("[A-Z]") if row[0].strip("`") in kinds]
    for row, rule in zip(table, RULES, strict=True):
        for test in rule.tests:
            if test.threshold:
                assert test.measure.written(test.threshold) in row[1], (rule.kind, test.measure.says)


def test_all_alerts_are_reported_and_no_other() -> None:
    listed = [row[0].strip("`") for row in rows("Argosy")]
    assert listed == [alert["alert"] for alert in ALERTS]


def test_what_the_operator_tells_of_scaling_is_reported() -> None:
    metrics = Metrics()
    metrics.collect(list)
    names = {line.split()[2] for line in metrics.text().decode().splitlines() if line.startswith("# TYPE ")}
    ours = {name for name in names if re.match("argosy_(scaling_|bottleneck|ensemble_step)", name)}
    assert {name for row in rows("argosy_") for name in re.findall(r"`(\w+)`", row[0])} == ours
