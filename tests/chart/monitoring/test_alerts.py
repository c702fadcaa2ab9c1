"""Alerts and recording rules, by Prometheus's own promtool: when they fire, and when they do not."""

import shutil
from pathlib import Path

import pytest
import yaml
from tests.chart.monitoring.files import ALERTS, EVERY_RULE, RULES
from tests.chart.monitoring.promtool import promtool

CASES = Path(__file__).with_name("alerts_test.yaml")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with the rules and their tests."""
    shutil.copy(RULES, tmp_path)
    shutil.copy(CASES, tmp_path)
    return tmp_path


def test_prometheus_reads_all_rules(folder: Path) -> None:
    assert f"{len(EVERY_RULE)} rules found" in promtool("check", "rules", folder / RULES.name)


def test_alerts_fire_when_they_should_and_not_else(folder: Path) -> None:
    assert "SUCCESS" in promtool("test", "rules", folder / CASES.name)


def test_every_alert_is_seen_to_fire() -> None:
    cases = [case for test in yaml.safe_load(CASES.read_text())["tests"] for case in test.get("alert_rule_test", [])]
    assert {case["alertname"] for case in cases if case["exp_alerts"]} == {alert["alert"] for alert in ALERTS}


def test_an_alert_says_what_it_is_about_and_what_to_do() -> None:
    for alert in ALERTS:
        assert alert["annotations"]["summary"].endswith("."), alert["alert"]
        assert "{{ $labels.namespace }}" in alert["annotations"]["summary"], alert["alert"]
        assert len(alert["annotations"]["description"]) > 20, alert["alert"]
        assert alert["labels"]["severity"] in ("critical", "warning", "info"), alert["alert"]
