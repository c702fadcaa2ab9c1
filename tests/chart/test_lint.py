"""The chart by itself: Helm's lint, the values' schema, the copy of the CRDs."""

import asyncio
import itertools
import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft7Validator
from tests.chart.conftest import CHART

INFO = 1

SETS: dict[str, dict[str, Any]] = {
    "as it is": {},
    "some namespaces": {"watchNamespaces": ["team-a", "team-b"]},
    "nothing but the operator": {
        "crds": {"install": False, "keep": False},
        "rbac": {"create": False},
        "serviceAccount": {"create": False, "name": "somebody"},
        "podDisruptionBudget": {"enabled": False},
        "metrics": {"service": {"enabled": False}},
        "admission": {"enabled": False},
    },
    "a certificate of one's own": {
        "admission": {"annotations": {"a": "b"}, "certificate": {"secretName": "mine", "caBundle": "YQ=="}}
    },
    "everything": {
        "metrics": {
            kind: {"enabled": True} for kind in ("serviceMonitor", "podMonitor", "prometheusRule", "dashboards")
        },
        "networkPolicy": {"enabled": True, "from": [{"namespaceSelector": {"matchLabels": {"a": "b"}}}]},
    },
}


def _merged(into: dict[str, Any], values: dict[str, Any]) -> dict[str, Any]:
    for key, value in values.items():
        into[key] = _merged(into[key], value) if isinstance(value, dict) and key in into else value
    return into


def _values() -> dict[str, Any]:
    return yaml.safe_load((CHART / "values.yaml").read_text())


def _worst(helm: Any, chart: Path) -> int:
    result = asyncio.run(helm.Lint(helm.Configuration()).run(str(chart)))
    return max((message["Severity"] for message in result["Messages"] or []), default=0)


@pytest.mark.parametrize("values", SETS.values(), ids=SETS)
def test_lint_finds_nothing(helm: Any, tmp_path: Path, values: dict[str, Any]) -> None:
    chart = Path(shutil.copytree(CHART, tmp_path / "argosy"))
    (chart / "values.yaml").write_text(yaml.safe_dump(_merged(_values(), values)))
    assert _worst(helm, chart) <= INFO


def test_lint_would_find_a_template_that_cannot_be_rendered(helm: Any, tmp_path: Path) -> None:
    chart = Path(shutil.copytree(CHART, tmp_path / "argosy"))
    (chart / "templates/broken.yaml").write_text('{{ include "argosy.none" . }}')
    assert _worst(helm, chart) > INFO


def _schema() -> dict[str, Any]:
    schema = json.loads((CHART / "values.schema.json").read_text())
    Draft7Validator.check_schema(schema)
    return schema


def _paths(schema: dict[str, Any], at: str = "") -> Iterator[str]:
    for name, field in schema.get("properties", {}).items():
        yield f"{at}/{name}"
        if field.get("additionalProperties") is False:
            yield from _paths(field, f"{at}/{name}")


def test_the_schema_knows_every_value_and_no_other() -> None:
    values = _values()
    optional = {"/global"}  # Helm's own, of a chart that has this one as a part
    for path in set(_paths(_schema())) - optional:
        value: Any = values
        for part in path.strip("/").split("/"):
            if not isinstance(value, dict) or not value:
                break  # of a list, or an empty map of Kubernetes' own
            assert part in value, f"values.yaml has no {path}"
            value = value[part]
    assert not list(Draft7Validator(_schema()).iter_errors(values))


AS_IN_A_POD = {
    "podAnnotations", "podLabels", "securityContext", "priorityClassName", "nodeSelector", "tolerations", "affinity",
    "terminationGracePeriodSeconds",
}  # fmt: skip
EXPLAINED_WITHIN = {"images", "crds", "rbac", "serviceAccount", "networkPolicy"}


def test_every_value_at_the_top_is_explained() -> None:
    lines = (CHART / "values.yaml").read_text().splitlines()
    for before, line in itertools.pairwise(lines):
        if (name := re.match(r"(\w+):", line)) and name[1] not in AS_IN_A_POD | EXPLAINED_WITHIN:
            assert before.startswith("#"), f"{name[1]} has no comment"


def test_the_chart_is_of_this_release() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    project = (CHART.parents[1] / "pyproject.toml").read_text()
    assert f'\nversion = "{chart["appVersion"]}"\n' in project
    assert chart["version"] == chart["appVersion"]


def test_the_copy_of_the_crds_is_current() -> None:
    source = CHART.parents[1] / "crds"
    assert {path.name: path.read_text() for path in (CHART / "files/crds").iterdir()} == {
        path.name: path.read_text() for path in source.glob("*.yaml")
    }
