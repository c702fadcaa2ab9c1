"""A dashboard as Grafana reads it: https://grafana.com/docs/grafana/latest/visualizations/dashboards/build-dashboards/"""

from collections.abc import Iterator
from typing import Any

from argosy.render.monitoring.dashboards.dashboard import Dashboard, Look, Panel, Query, Variable

SCHEMA = 39
"""Grafana 10's; later ones read it, and bring it up to their own."""
COLUMNS, HEIGHT, LOW = 24, 8, 4
_ALL = {"allValue": ".*", "current": {"text": "All", "value": "$__all"}}
_SOURCE = {"type": "prometheus", "uid": "${datasource}"}


def grafana(dashboard: Dashboard) -> dict[str, Any]:
    """Return the dashboard's JSON."""
    return {
        "uid": dashboard.uid,
        "title": dashboard.title,
        "description": dashboard.says,
        "tags": ["argosy"],
        "schemaVersion": SCHEMA,
        "version": 1,
        "editable": False,
        "refresh": "30s",
        "time": {"from": "now-1h", "to": "now"},
        "timezone": "",
        "graphTooltip": 1,
        "links": [_link()],
        "annotations": {"list": []},
        "templating": {"list": [_datasource(), *(_variable(each) for each in dashboard.variables)]},
        "panels": list(_panels(dashboard)),
    }


def _link() -> dict[str, Any]:
    return {"type": "dashboards", "title": "Argosy", "tags": ["argosy"], "asDropdown": True, "keepTime": True}


def _datasource() -> dict[str, Any]:
    return {"name": "datasource", "type": "datasource", "label": "Prometheus", "query": "prometheus", "current": {}}


def _variable(variable: Variable) -> dict[str, Any]:
    query = f"label_values({variable.metric}, {variable.label})"
    return {
        "name": variable.name,
        "label": variable.name.capitalize(),
        "type": "query",
        "datasource": _SOURCE,
        "definition": query,
        "query": {"query": query, "refId": variable.name},
        "refresh": 2,
        "sort": 1,
        "multi": variable.several,
        "includeAll": variable.several,
        "current": {},
        **(_ALL if variable.several else {}),
    }


def _panels(dashboard: Dashboard) -> Iterator[dict[str, Any]]:
    """Rows and panels with their places: from left to right, and down where the line is full."""
    number = top = 0
    for row in dashboard.rows:
        number += 1
        yield {"id": number, "type": "row", "title": row.title, "collapsed": False, "panels": [], **_at(0, top, 24, 1)}
        left, top, tallest = 0, top + 1, 0
        for panel in row.panels:
            height = LOW if panel.look is Look.STAT else HEIGHT
            if left + panel.width > COLUMNS:
                left, top, tallest = 0, top + tallest, 0
            number += 1
            yield {"id": number, **_panel(panel), **_at(left, top, panel.width, height)}
            left, tallest = left + panel.width, max(tallest, height)
        top += tallest


def _at(left: int, top: int, width: int, height: int) -> dict[str, Any]:
    return {"gridPos": {"x": left, "y": top, "w": width, "h": height}}


def _panel(panel: Panel) -> dict[str, Any]:
    return {
        "type": panel.look.value,
        "title": panel.title,
        "description": panel.says,
        "datasource": _SOURCE,
        "targets": [_target(panel, index, query) for index, query in enumerate(panel.queries)],
        "fieldConfig": {"defaults": {"unit": panel.unit.value, "custom": _custom(panel)}, "overrides": []},
        "options": _options(panel),
        **({"transformations": _as_table()} if panel.look is Look.TABLE else {}),
    }


def _target(panel: Panel, index: int, query: Query) -> dict[str, Any]:
    at_once = panel.look is Look.TABLE
    forms = {Look.TABLE: "table", Look.HEATMAP: "heatmap"}
    return {
        "refId": chr(ord("A") + index),
        "datasource": _SOURCE,
        "expr": query.expr,
        "legendFormat": query.legend or "__auto",
        "format": forms.get(panel.look, "time_series"),
        "instant": at_once,
        "range": not at_once,
    }


def _custom(panel: Panel) -> dict[str, Any]:
    if panel.look is not Look.LINES:
        return {}
    stacking = {"mode": "normal" if panel.stacked else "none", "group": "A"}
    return {"fillOpacity": 40 if panel.stacked else 8, "stacking": stacking, "showPoints": "never", "lineWidth": 1}


def _options(panel: Panel) -> dict[str, Any]:
    match panel.look:
        case Look.LINES:
            legend = {"displayMode": "list", "placement": "bottom", "showLegend": True, "calcs": []}
            return {"legend": legend, "tooltip": {"mode": "multi", "sort": "desc"}}
        case Look.STAT:
            return {"reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False}, "colorMode": "value"}
        case Look.HEATMAP:
            return {"calculate": False, "yAxis": {"unit": "short"}}
        case Look.STATES:
            return {"showValue": "never", "mergeValues": True}
        case Look.TABLE:
            return {"showHeader": True}


def _as_table() -> list[dict[str, Any]]:
    """Several queries are columns of one table, without the time."""
    return [{"id": "merge", "options": {}}, {"id": "organize", "options": {"excludeByName": {"Time": True}}}]
