"""A dashboard as a value: rows of panels over queries of Prometheus, and what the reader chooses."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum


class Look(StrEnum):
    """How a panel shows its queries: Grafana's name of it."""

    LINES = "timeseries"
    STAT = "stat"
    TABLE = "table"
    STATES = "state-timeline"
    HEATMAP = "heatmap"


class Unit(StrEnum):
    """Of a panel's values: Grafana's id of it."""

    NONE = "short"
    SECONDS = "s"
    SHARE = "percentunit"
    PER_SECOND = "reqps"
    BYTES = "bytes"


@dataclass(frozen=True, slots=True)
class Query:
    """PromQL, and what its series are called: `{{model}}` stands for a label."""

    expr: str
    legend: str = ""


@dataclass(frozen=True, slots=True)
class Panel:
    """`says` explains it in a sentence. `width` of 24. `stacked`: its series are parts of a whole."""

    title: str
    says: str
    queries: tuple[Query, ...]
    unit: Unit = Unit.NONE
    look: Look = Look.LINES
    width: int = 8
    stacked: bool = False


@dataclass(frozen=True, slots=True)
class Row:
    """Panels side by side, beneath a title."""

    title: str
    panels: tuple[Panel, ...]


@dataclass(frozen=True, slots=True)
class Variable:
    """What the reader chooses: a value of `label` among the series of `metric`, which has the earlier choices."""

    name: str
    metric: str
    label: str
    several: bool = False


@dataclass(frozen=True, slots=True)
class Dashboard:
    """`uid` is Grafana's and the file's name."""

    uid: str
    title: str
    says: str
    variables: tuple[Variable, ...]
    rows: tuple[Row, ...]

    def expressions(self) -> Iterator[str]:
        """Return all its queries."""
        return (query.expr for row in self.rows for panel in row.panels for query in panel.queries)
