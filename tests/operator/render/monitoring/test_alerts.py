"""Alerts and recording rules, by Prometheus's own promtool: when they fire, and when they do not."""

import shutil
from pathlib import Path

import pytest
import yaml
from tests.operator.render.monitoring.promtool import promtool

from argosy.render.monitoring.alerts import ALERTS
from argosy.render.monitoring.files import RULES, monitoring_files
from argosy.render.monitoring.recording import RECORDING
from argosy.render.monitoring.rules import Alert

CASES = Path(__file__).with_name("alerts_test.yaml")
EVERY = [rule for group in ALERTS for rule in group.rules if isinstance(rule, Alert)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with the rules and their tests."""
    (tmp_path / RULES).write_text(monitoring_files()[RULES])
    shutil.copy(CASES, tmp_path)
    return tmp_path


def test_prometheus_reads_all_rules(folder: Path) -> None:
    count = sum(len(group.rules) for group in (*RECORDING, *ALERTS))
    assert f"{count} rules found" in promtool("check", "rules", folder / RULES)


def test_alerts_fire_when_they_should_and_not_else(folder: Path) -> None:
    assert "SUCCESS" in promtool("test", "rules", folder / CASES.name)


def test_every_alert_is_seen_to_fire() -> None:
    cases = [case for test in yaml.safe_load(CASES.read_text())["tests"] for case in test.get("alert_rule_test", [])]
    assert {case["alertname"] for case in cases if case["exp_alerts"]} == {alert.name for alert in EVERY}


def test_an_alert_says_what_it_is_about_and_what_to_do() -> None:
    for alert in EVERY:
        assert alert.summary.endswith("."), alert.name
        assert "{{ $labels.namespace }}" in alert.summary, alert.name
        assert len(alert.description) > 20, alert.name
