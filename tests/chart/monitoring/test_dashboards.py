"""Dashboards: queries that Prometheus reads, and panels that do not overlap."""

import re
from pathlib import Path

import pytest
import yaml
from tests.chart.monitoring.files import DASHBOARDS, expressions, panels
from tests.chart.monitoring.promtool import promtool

ALL = pytest.mark.parametrize("name", DASHBOARDS)
COLUMNS = 24
"""The width of a dashboard."""
UNITS = {"short", "s", "percentunit", "reqps", "bytes"}
"""Grafana's ids of the units that panels have."""


def test_prometheus_reads_every_query(tmp_path: Path) -> None:
    queries = sorted({expr for dashboard in DASHBOARDS.values() for expr in expressions(dashboard)})
    rules = [{"record": f"query:{number}", "expr": expr} for number, expr in enumerate(queries)]
    (tmp_path / "queries.yaml").write_text(yaml.safe_dump({"groups": [{"name": "all", "rules": rules}]}))
    assert f"{len(rules)} rules found" in promtool("check", "rules", tmp_path / "queries.yaml")


@ALL
def test_the_uid_of_a_dashboard_is_the_name_of_its_file(name: str) -> None:
    assert DASHBOARDS[name]["uid"] == name


@ALL
def test_panels_do_not_overlap(name: str) -> None:
    every = DASHBOARDS[name]["panels"]
    assert len({panel["id"] for panel in every}) == len(every)
    taken: set[tuple[int, int]] = set()
    for panel in every:
        at = panel["gridPos"]
        assert at["x"] + at["w"] <= COLUMNS
        cells = {(at["x"] + across, at["y"] + down) for across in range(at["w"]) for down in range(at["h"])}
        assert not cells & taken, panel["title"]
        taken |= cells


@ALL
def test_panels_say_what_they_show_and_ask_what_is_chosen(name: str) -> None:
    chosen = {variable["name"] for variable in DASHBOARDS[name]["templating"]["list"]}
    for panel in panels(DASHBOARDS[name]):
        assert panel["description"].endswith("."), panel["title"]
        assert panel["fieldConfig"]["defaults"]["unit"] in UNITS
        letters = [target["refId"] for target in panel["targets"]]
        assert len(set(letters)) == len(letters) > 0
        for target in panel["targets"]:
            assert set(re.findall(r"\$\{?(\w+)", target["expr"])) <= chosen
            assert target["datasource"]["uid"] == "${datasource}"


@ALL
def test_legends_name_labels_that_their_series_have(name: str) -> None:
    for panel in panels(DASHBOARDS[name]):
        for target in panel["targets"]:
            grouped = re.match(r"(?:sum|max|avg) by \(([^)]*)\)", target["expr"])
            if grouped and target.get("legendFormat"):
                labels = set(re.findall(r"{{(\w+)}}", target["legendFormat"]))
                assert labels <= set(grouped[1].split(", ")), panel["title"]
