"""Dashboards: queries that Prometheus reads, and panels that have a place each."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.operator.render.monitoring.promtool import promtool

from argosy.render.monitoring.dashboards.dashboard import Dashboard, Unit
from argosy.render.monitoring.dashboards.grafana import COLUMNS
from argosy.render.monitoring.files import DASHBOARDS, monitoring_files

ALL = pytest.mark.parametrize("dashboard", DASHBOARDS, ids=lambda item: item.uid)


def body(dashboard: Dashboard) -> dict[str, Any]:
    """Return its file."""
    result: dict[str, Any] = json.loads(monitoring_files()[f"{dashboard.uid}.json"])
    return result


def test_prometheus_reads_every_query(tmp_path: Path) -> None:
    expressions = sorted({expr for dashboard in DASHBOARDS for expr in dashboard.expressions()})
    rules = [{"record": f"query:{number}", "expr": expr} for number, expr in enumerate(expressions)]
    (tmp_path / "queries.yaml").write_text(yaml.safe_dump({"groups": [{"name": "all", "rules": rules}]}))
    assert f"{len(rules)} rules found" in promtool("check", "rules", tmp_path / "queries.yaml")


@ALL
def test_every_panel_has_its_own_position(dashboard: Dashboard) -> None:
    panels = body(dashboard)["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    taken: set[tuple[int, int]] = set()
    for panel in panels:
        location = panel["gridPos"]
        assert location["x"] + location["w"] <= COLUMNS
        cells = {
            (location["x"] + across, location["y"] + down)
            for across in range(location["w"])
            for down in range(location["h"])
        }
        assert not cells & taken, panel["title"]
        taken |= cells


@ALL
def test_panels_say_what_they_show_and_ask_what_is_chosen(dashboard: Dashboard) -> None:
    chosen = {variable["name"] for variable in body(dashboard)["templating"]["list"]}
    for panel in body(dashboard)["panels"]:
        if panel["type"] == "row":
            continue
        assert panel["description"].endswith("."), panel["title"]
        assert panel["fieldConfig"]["defaults"]["unit"] in set(Unit)
        letters = [target["refId"] for target in panel["targets"]]
        assert len(set(letters)) == len(letters) > 0
        for target in panel["targets"]:
            assert set(re.findall(r"\$\{?(\w+)", target["expr"])) <= chosen
            assert target["datasource"]["uid"] == "${datasource}"


@ALL
def test_legends_name_labels_that_their_series_have(dashboard: Dashboard) -> None:
    for row in dashboard.rows:
        for panel in row.panels:
            for query in panel.queries:
                grouped = re.match(r"(?:sum|max|avg) by \(([^)]*)\)", query.expr)
                if grouped and query.legend:
                    named = set(re.findall(r"{{(\w+)}}", query.legend))
                    assert named <= set(grouped[1].split(", ")), panel.title


def test_files_are_the_same_every_time() -> None:
    assert monitoring_files() == monitoring_files()
