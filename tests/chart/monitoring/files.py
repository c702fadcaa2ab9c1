"""The chart's rules and dashboards, read for tests."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

FOLDER = Path(__file__).parents[3] / "charts" / "argosy" / "files" / "monitoring"
RULES = FOLDER / "rules.yaml"
EVERY_RULE: list[dict[str, Any]] = [
    rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]
]
RECORDS = [rule for rule in EVERY_RULE if "record" in rule]
ALERTS = [rule for rule in EVERY_RULE if "alert" in rule]
DASHBOARDS: dict[str, dict[str, Any]] = {
    path.stem: json.loads(path.read_text()) for path in sorted(FOLDER.glob("*.json"))
}
_VARIABLE = re.compile(r"label_values\((?P<metric>.*), (?P<label>\w+)\)")


def panels(dashboard: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the panels that have queries."""
    return [panel for panel in dashboard["panels"] if panel["type"] != "row"]


def expressions(dashboard: dict[str, Any]) -> list[str]:
    """Return the queries of all panels."""
    return [target["expr"] for panel in panels(dashboard) for target in panel["targets"]]


def variables(dashboard: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the label of each variable that Prometheus fills, with the series that have it."""
    for variable in dashboard["templating"]["list"]:
        if variable["type"] == "query":
            match = _VARIABLE.fullmatch(variable["query"]["query"])
            assert match is not None, variable["name"]
            yield match["label"], match["metric"]
