"""Prometheus's rules as values: https://prometheus.io/docs/prometheus/latest/configuration/recording_rules/"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Severity(StrEnum):
    """Whom an alert is for: somebody now, somebody today, somebody who looks."""

    CRITICAL = "critical"
    WARNING = "warning"
    INFO = "info"


@dataclass(frozen=True, slots=True)
class Record:
    """A series that is worked out beforehand. `name` is level:metric:operations."""

    name: str
    expr: str

    def body(self) -> dict[str, Any]:
        """As a rule file has it."""
        return {"record": self.name, "expr": self.expr}


@dataclass(frozen=True, slots=True)
class Alert:
    """What somebody should know. `expr` has to hold for `lasting`, a duration of Prometheus's; `summary` and
    `description` may name {{ $labels.… }} and {{ $value }}.
    """

    name: str
    expr: str
    lasting: str
    severity: Severity
    summary: str
    description: str

    def body(self) -> dict[str, Any]:
        """As a rule file has it."""
        return {
            "alert": self.name,
            "expr": self.expr,
            "for": self.lasting,
            "labels": {"severity": self.severity.value},
            "annotations": {"summary": self.summary, "description": self.description},
        }


@dataclass(frozen=True, slots=True)
class Group:
    """Rules that are worked out together, every `interval`; as often as Prometheus is set to where that is empty."""

    name: str
    rules: tuple[Record | Alert, ...]
    interval: str = ""

    def body(self) -> dict[str, Any]:
        """As a rule file has it."""
        interval = {"interval": self.interval} if self.interval else {}
        return {"name": self.name, **interval, "rules": [rule.body() for rule in self.rules]}


def rule_file(groups: Iterable[Group]) -> dict[str, Any]:
    """Return a rule file, which is also a PrometheusRule's spec."""
    return {"groups": [group.body() for group in groups]}
